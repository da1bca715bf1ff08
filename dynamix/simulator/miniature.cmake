# The miniatures' part of the simulator room; included by CMakeLists.txt beside it.
find_package(ZLIB REQUIRED)

set(DYNAMIX_MINIATURE_SOURCES
  idx_file.cc miniature.cc miniature_data.cc miniature_kernels.cc miniature_network.cc
  miniature_options.cc miniature_task.cc)
# Without errno, square roots vectorise.
set_source_files_properties(miniature_kernels.cc PROPERTIES COMPILE_OPTIONS -fno-math-errno)
