// Embeds the page's files. SwiftPM's `.embedInCode` makes an array literal of each, which takes half a minute to compile.

#include "CPage.h"

#include <string.h>

// A build notices a change of these files because they are named here.
#if !(__has_include("Page/page.html") && __has_include("Page/page.css") && __has_include("Page/language.js") \
  && __has_include("Page/elements.js") && __has_include("Page/model.js") && __has_include("Page/values.js") \
  && __has_include("Page/view.js") && __has_include("Page/tile.js") && __has_include("Page/compact.js") \
  && __has_include("Page/chart.js") && __has_include("Page/device.js") && __has_include("Page/dialogs.js") \
  && __has_include("Page/gateway.js") && __has_include("Page/record.js") && __has_include("Page/number.js") \
  && __has_include("Page/page.js") && __has_include("Page/texts/en.json") && __has_include("Page/texts/de.json") \
  && __has_include("Page/texts/fr.json") && __has_include("Page/texts/es.json") && __has_include("Page/texts/it.json") \
  && __has_include("Page/texts/nl.json") && __has_include("Page/texts/pt.json") && __has_include("Page/texts/ja.json") \
  && __has_include("Page/texts/zh.json") && __has_include("SetupPage/setup.js") && __has_include("SetupPage/setup.css"))
#error "A file of the page is missing"
#endif

#define FILES(F) \
  F(Page/, page, html) F(Page/, page, css) F(Page/, language, js) F(Page/, elements, js) \
  F(Page/, model, js) F(Page/, values, js) F(Page/, view, js) F(Page/, tile, js) \
  F(Page/, compact, js) F(Page/, chart, js) F(Page/, device, js) F(Page/, dialogs, js) \
  F(Page/, gateway, js) F(Page/, record, js) F(Page/, number, js) F(Page/, page, js) \
  F(Page/texts/, en, json) F(Page/texts/, de, json) F(Page/texts/, fr, json) F(Page/texts/, es, json) \
  F(Page/texts/, it, json) F(Page/texts/, nl, json) F(Page/texts/, pt, json) F(Page/texts/, ja, json) \
  F(Page/texts/, zh, json) F(SetupPage/, setup, js) F(SetupPage/, setup, css)

#define EMBED(folder, base, extension) \
  __asm__( \
    ".pushsection .rodata\n" \
    #base "_" #extension ": .incbin \"" #folder #base "." #extension "\"\n" \
    #base "_" #extension "_end:\n" \
    ".popsection\n"); \
  extern const unsigned char base##_##extension[], base##_##extension##_end[];

#define ENTRY(folder, base, extension) {#base "." #extension, base##_##extension, base##_##extension##_end},

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
