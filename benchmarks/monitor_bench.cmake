# monitor_bench: the monitor's cost. Needs the eBPF build: its kernel statistics are the measure.
if(DYNAMIX_WITH_BPF)
  add_executable(monitor_bench
    ${CMAKE_CURRENT_LIST_DIR}/monitor_bench.cc ${CMAKE_CURRENT_LIST_DIR}/monitor_ring.cc
    ${CMAKE_CURRENT_LIST_DIR}/program_cost.cc)
  target_link_libraries(monitor_bench PRIVATE dynamix::monitor bpf dynamix_flags)
endif()
