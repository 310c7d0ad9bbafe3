// The XPath expressions of deploy/telegraf/telegraf.conf, evaluated by Telegraf's own library on readings as the gateway
// publishes them, as Telegraf's parser does with them (plugins/parsers/xpath).
package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"sort"
	"strings"

	"github.com/antchfx/jsonquery"
	"github.com/antchfx/xpath"
)

// What is stored of a value.
var cases = []struct{ value, fields string }{
	{"21", "value=21"},
	{"-3.25", "value=-3.25"},
	{"0", "value=0"},
	{`{"x":-160,"y":4,"z":-1020}`, "x=-160 y=4 z=-1020"},
	{`{"bpm":72,"rr":[1.0,0.98]}`, "bpm=72"},
	{`"press_start"`, "text=press_start"},
	{`"21 apples"`, "text=21 apples"},
	{"true", "text=true"},
	{`"..#../.###./..#../..#../..#.."`, "text=..#../.###./..#../..#../..#.."},
	{"null", ""},
}

var setting = regexp.MustCompile(`(?m)^ +(field_selection|field_name|field_value) = "(.*)"$`)

func main() {
	configuration, err := os.ReadFile(os.Args[1])
	check(err)
	blocks := strings.Split(string(configuration), "[[inputs.mqtt_consumer.xpath]]")[1:]
	failed := len(blocks) == 0
	for _, c := range cases {
		json := `{"property":"p","value":` + c.value + `,"time":"2026-11-26T10:00:00.000Z","sequence":7,"gateway":"g"}`
		document, err := jsonquery.Parse(strings.NewReader(json))
		check(err)
		fields := []string{}
		for _, block := range blocks {
			settings := map[string]string{}
			for _, found := range setting.FindAllStringSubmatch(block, -1) {
				settings[found[1]] = found[2]
			}
			nodes, err := jsonquery.QueryAll(document, settings["field_selection"])
			check(err)
			for _, node := range nodes {
				name, value := evaluate(node, settings["field_name"]), evaluate(node, settings["field_value"])
				// The serializer leaves these out.
				if number, ok := value.(float64); ok && (math.IsNaN(number) || math.IsInf(number, 0)) {
					continue
				}
				fields = append(fields, fmt.Sprintf("%v=%v", name, value))
			}
		}
		sort.Strings(fields)
		if got := strings.Join(fields, " "); got != c.fields {
			fmt.Printf("not so: %s gives %q, not %q\n", c.value, got, c.fields)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
	fmt.Printf("ok: %d kinds of values\n", len(cases))
}

func evaluate(node *jsonquery.Node, expression string) interface{} {
	compiled, err := xpath.Compile(expression)
	check(err)
	result := compiled.Evaluate(jsonquery.CreateXPathNavigator(node))
	if nodes, ok := result.(*xpath.NodeIterator); ok {
		if !nodes.MoveNext() {
			return nil
		}
		return nodes.Current().Value()
	}
	return result
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
