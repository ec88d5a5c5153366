# Writes PTX into FOLDER with every `and.b32 ..., -4` made to keep all bits, and has JUDGE judge it.
file(READ ${PTX} text)
string(REPLACE ", -4;" ", -1;" text "${text}")
file(WRITE ${FOLDER}/edited.ptx "${text}")
file(WRITE ${FOLDER}/images.json "[{\"file\": \"edited.ptx\"}]")
set(SOURCES ${FOLDER})
set(REPORT ${FOLDER}/verdicts.json)
include(${JUDGE})
