# The arbitrator under faults: a small job, real processes.
add_executable(advised_job advised_job.cc)
target_link_libraries(advised_job PRIVATE dynamix::rpc dynamix_flags)
if(NOT DYNAMIX_SANITIZER)
  foreach(name absence access chaos policies resources watching)
    add_test(NAME arbitrator_${name}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/arbitrator_${name}_test.py
                     $<TARGET_FILE:dynamix> $<TARGET_FILE:advised_job> ${PROJECT_SOURCE_DIR})
    set_tests_properties(arbitrator_${name} PROPERTIES TIMEOUT 900 LABELS job)
  endforeach()
endif()
add_test(NAME service_unit
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/service_unit_test.sh $<TARGET_FILE:dynamix>
                 ${PROJECT_SOURCE_DIR})
set_tests_properties(service_unit PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME history COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/history_test.py)
if(DYNAMIX_WITH_TORCH)
  add_test(NAME arbitrator_training
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/arbitrator_training_test.py
                   $<TARGET_FILE:dynamix> /usr/share/datasets/fashion-mnist ${PROJECT_SOURCE_DIR})
  set_tests_properties(arbitrator_training PROPERTIES TIMEOUT 900 LABELS job)
endif()
