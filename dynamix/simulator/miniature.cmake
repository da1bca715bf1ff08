# The miniatures' part of the simulator room; included by CMakeLists.txt beside it.
find_package(ZLIB REQUIRED)
# Deferred to the end of that file, where the room exists.
cmake_language(DEFER CALL target_link_libraries dynamix_simulator PRIVATE ZLIB::ZLIB)
set(DYNAMIX_FASHION_MNIST_DIR /usr/share/datasets/fashion-mnist CACHE PATH
    "Folder of the four gzip IDX files of Fashion-MNIST, for tests and benchmarks")

set(DYNAMIX_MINIATURE_SOURCES
  idx_file.cc miniature.cc miniature_data.cc miniature_kernels.cc miniature_network.cc
  miniature_options.cc miniature_task.cc)
set(DYNAMIX_MINIATURE_TESTS
  idx_file_test.cc miniature_data_test.cc miniature_fashion_test.cc miniature_kernels_test.cc
  miniature_network_test.cc miniature_options_test.cc miniature_test.cc sample_order_test.cc)

# Without errno, square roots vectorise.
set_source_files_properties(miniature_kernels.cc PROPERTIES COMPILE_OPTIONS -fno-math-errno)
set_source_files_properties(miniature_fashion_test.cc PROPERTIES
  COMPILE_DEFINITIONS DYNAMIX_FASHION_MNIST_DIR="${DYNAMIX_FASHION_MNIST_DIR}")

if(DYNAMIX_WITH_TORCH AND DYNAMIX_BUILD_TESTS)
  find_package(Torch REQUIRED)
  dynamix_room_test(simulator_torch SOURCES miniature_torch_test.cc
                    DEPENDS dynamix::simulator ${TORCH_LIBRARIES})
endif()
