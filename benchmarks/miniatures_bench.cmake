# miniatures_bench: needs OpenBLAS (libopenblas-pthread-dev) for its ceiling.
find_package(Threads REQUIRED)
find_library(DYNAMIX_OPENBLAS openblas PATH_SUFFIXES openblas-pthread)
find_path(DYNAMIX_OPENBLAS_INCLUDE openblas_config.h PATH_SUFFIXES openblas-pthread)
if(DYNAMIX_OPENBLAS AND DYNAMIX_OPENBLAS_INCLUDE)
  add_executable(miniatures_bench miniatures_bench.cc)
  target_include_directories(miniatures_bench PRIVATE ${DYNAMIX_OPENBLAS_INCLUDE})
  target_compile_definitions(miniatures_bench PRIVATE
    DYNAMIX_FASHION_MNIST_DIR="${DYNAMIX_FASHION_MNIST_DIR}")
  target_link_libraries(miniatures_bench PRIVATE dynamix::simulator dynamix_flags
                                                 ${DYNAMIX_OPENBLAS} Threads::Threads)
else()
  message(STATUS "OpenBLAS not found: miniatures_bench is not built")
endif()
