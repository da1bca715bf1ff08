# dynamix arbitrator, and the flags `dynamix train` shares with it.
target_sources(dynamix_cli PRIVATE advisor_flags.cc dashboard_flags.cc)
target_link_libraries(dynamix_cli PUBLIC dynamix::rpc dynamix::dashboard)
target_sources(dynamix PRIVATE arbitrator_command.cc epoch_file.cc service_log.cc)
