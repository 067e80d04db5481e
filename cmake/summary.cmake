# The configure summary: what is built, with which optional things. A room adds its line with
# treering_summary("hwloc" "${hwloc_VERSION}"); an empty text means that the thing was not found.
function(treering_summary what text)
  if(text STREQUAL "")
    set(text "not found")
  endif()
  string(LENGTH "${what}" length)
  math(EXPR spaces "18 - ${length}")
  string(REPEAT " " ${spaces} padding)
  set_property(GLOBAL APPEND_STRING PROPERTY TREERING_SUMMARY "  ${what}${padding}${text}\n")
endfunction()

# Also left in the build folder, for `./dev`.
function(treering_print_summary)
  get_property(lines GLOBAL PROPERTY TREERING_SUMMARY)
  set(text "Treering ${PROJECT_VERSION}\n${lines}")
  file(WRITE ${PROJECT_BINARY_DIR}/summary.txt "${text}")
  message(STATUS "${text}")
endfunction()
