// Embeds the page's files. SwiftPM's `.embedInCode` makes an array literal of each, which takes half a minute to compile.

#include "CPage.h"

#include <string.h>

// A build notices a change of these files because they are named here.
#if !(__has_include("page.html") && __has_include("page.css") \
  && __has_include("language.js") && __has_include("elements.js") && __has_include("model.js") \
  && __has_include("values.js") && __has_include("view.js") && __has_include("tile.js") \
  && __has_include("compact.js") && __has_include("chart.js") && __has_include("device.js") \
  && __has_include("dialogs.js") && __has_include("gateway.js") && __has_include("record.js") \
  && __has_include("number.js") && __has_include("page.js") \
  && __has_include("en.json") && __has_include("de.json") && __has_include("fr.json") \
  && __has_include("es.json") && __has_include("it.json") && __has_include("nl.json") \
  && __has_include("pt.json") && __has_include("ja.json") && __has_include("zh.json") \
  && __has_include("setup.js") && __has_include("setup.css"))
#error "A file of the page is missing"
#endif

#define FILES(F) \
  F(page, html) F(page, css) F(language, js) F(elements, js) F(model, js) F(values, js) F(view, js) F(tile, js) \
  F(compact, js) F(chart, js) F(device, js) F(dialogs, js) F(gateway, js) F(record, js) F(number, js) F(page, js) \
  F(en, json) F(de, json) F(fr, json) F(es, json) F(it, json) F(nl, json) F(pt, json) F(ja, json) F(zh, json) \
  F(setup, js) F(setup, css)

#define EMBED(base, extension) \
  __asm__( \
    ".pushsection .rodata\n" \
    #base "_" #extension ": .incbin \"" #base "." #extension "\"\n" \
    #base "_" #extension "_end:\n" \
    ".popsection\n"); \
  extern const unsigned char base##_##extension[], base##_##extension##_end[];

#define ENTRY(base, extension) {#base "." #extension, base##_##extension, base##_##extension##_end},

FILES(EMBED)

static const struct {
  const char *name;
  const unsigned char *begin, *end;
} files[] = {FILES(ENTRY)};

struct page_file page_file(const char *name) {
  for (unsigned long i = 0; i < sizeof files / sizeof *files; i++) {
    if (strcmp(files[i].name, name) == 0) {
      return (struct page_file){files[i].begin, files[i].end - files[i].begin};
    }
  }
  return (struct page_file){NULL, 0};
}
