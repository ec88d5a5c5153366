# Analyzes every PTX file of FOLDER and writes the report to REPORT. Stops and prints the report as text if the analyzer
# does not return 0: a kernel has a critical finding or a score below 90.
file(GLOB files ${FOLDER}/*.ptx)
list(SORT files)
execute_process(COMMAND ${PROGRAM} analyze --falsify --json=${REPORT} ${files}
  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT status EQUAL 0)
  file(REMOVE ${REPORT})
  message(FATAL_ERROR "${text}\na kernel of this project was refuted: ptx-debug returned ${status}")
endif()
