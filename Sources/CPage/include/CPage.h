#pragma once

/// A file of the page as it is embedded in the program.
struct page_file {
  const unsigned char *bytes;
  unsigned long count;
};

/// The file with this name, without its folder; its bytes are NULL if there is none.
struct page_file page_file(const char *name);
