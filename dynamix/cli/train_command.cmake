# dynamix train and dynamix launch: sources of the commands.
target_sources(dynamix PRIVATE
  launch_command.cc train_command.cc train_flags.cc train_live.cc virtual_suite.cc)
target_link_libraries(dynamix PRIVATE dynamix::monitor dynamix::training)
target_compile_definitions(dynamix PRIVATE DYNAMIX_WITH_TORCH)
if(DYNAMIX_BUILD_TESTS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME train_command
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_command_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist)
  add_test(NAME example.own_training_two_ranks
           COMMAND dynamix launch -n 2 -- $<TARGET_FILE:own_training>)
  set_tests_properties(train_command example.own_training_two_ranks PROPERTIES TIMEOUT 300)
endif()
