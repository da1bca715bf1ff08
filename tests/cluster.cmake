# Jobs on clusters: hosts as network namespaces, a real Slurm, manifests.
if(DYNAMIX_WITH_TORCH AND NOT DYNAMIX_SANITIZER)
  set(fashion_mnist /usr/share/datasets/fashion-mnist)
  add_test(NAME hosts
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/hosts_test.py
                   $<TARGET_FILE:dynamix> ${fashion_mnist} ${PROJECT_SOURCE_DIR})
  set_tests_properties(hosts PROPERTIES TIMEOUT 900 LABELS job SKIP_RETURN_CODE 77)
  if(TARGET dynamix_python)
    # Debian's interpreter, for which the package is built.
    add_test(NAME slurm
             COMMAND ${DYNAMIX_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/slurm_test.py
                     $<TARGET_FILE:dynamix> ${PROJECT_BINARY_DIR}/python ${fashion_mnist} ${PROJECT_SOURCE_DIR})
    add_test(NAME kubernetes
             COMMAND ${DYNAMIX_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/kubernetes_test.py
                     $<TARGET_FILE:dynamix> ${PROJECT_BINARY_DIR}/python ${PROJECT_SOURCE_DIR})
    set_tests_properties(slurm PROPERTIES TIMEOUT 900 LABELS job SKIP_RETURN_CODE 77)
  endif()
endif()
