// What glibc's Swift module map leaves out, and accessors for globals that Swift 6 may not touch.
#pragma once
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/xattr.h>

static inline char *clinux_optarg(void) { return optarg; }
static inline int clinux_optind(void) { return optind; }
static inline int clinux_optopt(void) { return optopt; }
static inline void clinux_reset_getopt(void) { optind = 0; opterr = 0; }

// glibc 2.34, hidden without _GNU_SOURCE, which the module Glibc is built without.
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);
