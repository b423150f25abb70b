int stoup_cmd_diff(int argc, char **argv);
int stoup_cmd_diff(int argc, char **argv) { (void)argc; (void)argv; return 2; }
