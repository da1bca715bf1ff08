# dynamix-train: the program of the commands that need libtorch, and their tests.
add_executable(dynamix_train
  compare_command.cc train_command.cc train_flags.cc train_launch.cc train_live.cc train_main.cc
  train_settings.cc virtual_suite.cc)
target_link_libraries(dynamix_train PRIVATE dynamix_cli dynamix::monitor dynamix::testbed
                      dynamix::training)
target_compile_options(dynamix_train PRIVATE -O1)
target_precompile_headers(dynamix_train REUSE_FROM dynamix_cli)
set_target_properties(dynamix_train PROPERTIES OUTPUT_NAME dynamix-train
                      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_dependencies(dynamix dynamix_train)  # who builds dynamix wants all its commands
if(DYNAMIX_BUILD_TESTS)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME trainer
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/trainer_test.py
                   $<TARGET_FILE:dynamix> $<TARGET_FILE:dynamix_train>)
  add_test(NAME command_line
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/command_line_test.py
                   $<TARGET_FILE:dynamix>)
  add_test(NAME evaluate_command
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/evaluate_command_test.py
                   $<TARGET_FILE:dynamix>)
  add_test(NAME report_command
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/report_command_test.py
                   $<TARGET_FILE:dynamix>)
  add_test(NAME calibrate_command
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/calibrate_command_test.py
                   $<TARGET_FILE:dynamix>)
  add_test(NAME train_command
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_command_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist)
  add_test(NAME train_ranks
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_ranks_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist)
  add_test(NAME train_elastic
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_elastic_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist)
  add_test(NAME example.own_training_two_ranks
           COMMAND dynamix launch -n 2 -- $<TARGET_FILE:own_training>)
  add_test(NAME compare_command
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/compare_command_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist)
  add_test(NAME full_disk
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/full_disk_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist)
  set_tests_properties(full_disk PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
  add_test(NAME testbed_command
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/testbed_command_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist)
  add_test(NAME text_job
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/text_job_test.py
                   $<TARGET_FILE:dynamix> ${DYNAMIX_ROOT}/scripts/fetch-text)
  set_tests_properties(text_job PROPERTIES SKIP_RETURN_CODE 77)
  set_tests_properties(compare_command evaluate_command train_command train_elastic train_ranks
                       testbed_command text_job example.own_training_two_ranks PROPERTIES TIMEOUT 900 LABELS job)
endif()
