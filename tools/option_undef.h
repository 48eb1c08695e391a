/* Forgets what a row of options means: between two readings of a table (option_table.h). Without a guard. */
#undef OPTION
#undef OPTION_OF_RUN
#undef OPTION_ONE_OF
#undef OPTION_OF_RUN_ONE_OF
#undef OPTION_FLAG
#undef OPTION_TEXT
#undef OPTION_NUMBER
#undef OPTION_LIMIT
#undef OPTION_CHOICE
#undef OPTION_LINE
#undef OPTION_USAGE
#undef OPTION_ABOUT
#undef OPTION_STATUS
