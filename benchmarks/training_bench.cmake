# training_bench: needs libtorch.
if(DYNAMIX_WITH_TORCH)
  find_package(Torch REQUIRED)
  add_executable(training_bench ${CMAKE_CURRENT_LIST_DIR}/training_bench.cc)
  target_link_libraries(training_bench PRIVATE dynamix::arbitrator dynamix::policies
                                               dynamix::training torch dynamix_flags)
endif()
