# simulator_bench: the quadratic engine's speed, cluster model and reports included.
add_executable(simulator_bench ${CMAKE_CURRENT_LIST_DIR}/simulator_bench.cc)
target_link_libraries(simulator_bench PRIVATE dynamix::simulator dynamix_flags)
