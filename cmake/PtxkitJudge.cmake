# Analyzes the PTX files that FOLDER/images.json lists and writes the report to REPORT. Stops and prints the reports of
# those for which the analyzer does not return 0: a kernel has a critical finding or a score below 90. Source lines are
# shown from the folder SOURCES. LAUNCH: launch files, separated by |.
file(READ ${FOLDER}/images.json images)
string(JSON last LENGTH "${images}")
math(EXPR last "${last} - 1")
set(files "")
foreach(index RANGE ${last})
  string(JSON name GET "${images}" ${index} file)
  list(APPEND files ${FOLDER}/${name})
endforeach()
set(options --no-config --falsify)
string(REPLACE "|" ";" launch_files "${LAUNCH}")
foreach(file IN LISTS launch_files)
  list(APPEND options --launch ${file})
endforeach()
execute_process(COMMAND ${PROGRAM} analyze ${options} --json=${REPORT} -- ${files} WORKING_DIRECTORY ${SOURCES}
  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
if(status EQUAL 0)
  return()
endif()
file(REMOVE ${REPORT})
set(reports "")
foreach(file IN LISTS files)
  execute_process(COMMAND ${PROGRAM} analyze ${options} -- ${file} WORKING_DIRECTORY ${SOURCES}
    RESULT_VARIABLE of_file OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT of_file EQUAL 0)
    string(APPEND reports "${text}\n")
  endif()
endforeach()
message("${errors}\n${reports}")  # as they are; message(FATAL_ERROR) would wrap their lines
message(FATAL_ERROR "a kernel was refuted: ptx-debug analyze returned ${status}")
