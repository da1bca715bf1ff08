# dynamix monitor: sources of the command, and its test.
target_sources(dynamix_cli PRIVATE monitor_command.cc monitor_view.cc)
target_link_libraries(dynamix_cli PUBLIC dynamix::monitor)
if(DYNAMIX_BUILD_TESTS)
  dynamix_room_test(monitor_command
    SOURCES monitor_command_test.cc DEPENDS dynamix_cli dynamix_test_host)
endif()
