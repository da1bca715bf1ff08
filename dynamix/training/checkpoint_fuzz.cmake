# The fuzz preset has no libtorch, and the reader of checkpoints needs none.
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
dynamix_fuzzer(checkpoint_fuzz
  SOURCES dynamix/training/checkpoint.cc dynamix/training/checkpoint_fuzz.cc
  DEPENDS dynamix::core dynamix::host dynamix::job ZLIB::ZLIB nlohmann_json::nlohmann_json)
