# dynamix monitor: sources of the command, and its test.
target_sources(dynamix PRIVATE monitor_command.cc monitor_view.cc)
target_link_libraries(dynamix PRIVATE dynamix::monitor)
if(DYNAMIX_BUILD_TESTS)
  dynamix_room_test(monitor_command
    SOURCES monitor_command_test.cc monitor_command.cc monitor_view.cc interrupt.cc table.cc
    DEPENDS dynamix::monitor dynamix_monitor_test_network CLI11::CLI11 spdlog::spdlog
            nlohmann_json::nlohmann_json)
endif()
