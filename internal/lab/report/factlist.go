package report

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"orrery/internal/text/sanitize"
)

// A factGroup is a part of facts.json on the page. The first group has no name and holds the
// top-level values.
type factGroup struct {
	Name string
	Open bool
	Rows []factRow
}

type factRow struct{ Name, Value string }

// facts lists the contents of facts.json in their order. Each object or list of objects becomes a
// group, and so does each member of an object of objects, such as those of several hosts.
func facts(text json.RawMessage) (groups []factGroup) {
	return factGroups("", gjson.ParseBytes(text), 2)
}

func factGroups(title string, all gjson.Result, depth int) (groups []factGroup) {
	const short = 14 // rows that are shown without unfolding
	plain := factGroup{Name: withSpaces(title), Open: true}
	for member, value := range members(all) {
		name := strings.TrimSpace(title + " " + member)
		rows := flatten("", value, maxFactDepth)
		switch {
		case depth > 1 && collection(value):
			groups = append(groups, factGroups(name, value, depth-1)...)
		case nested(value) && len(rows) > 1:
			groups = append(groups, factGroup{Name: withSpaces(name), Rows: rows, Open: len(rows) <= short})
		case len(rows) == 1:
			plain.Rows = append(plain.Rows, factRow{withSpaces(strings.TrimSpace(member + " " + rows[0].Name)), rows[0].Value})
		}
	}
	if len(plain.Rows) > 0 {
		groups = append([]factGroup{plain}, groups...)
	}
	return groups
}

// members iterates over the members of an object in their order, which encoding/json's maps do not
// keep.
func members(object gjson.Result) iter.Seq2[string, gjson.Result] {
	return func(yield func(string, gjson.Result) bool) {
		if object.IsObject() {
			object.ForEach(func(name, value gjson.Result) bool { return yield(sanitize.Line(name.String()), value) })
		}
	}
}

func nested(value gjson.Result) bool { return value.IsObject() || value.IsArray() }

// collection reports whether an object contains at least three objects or lists.
func collection(object gjson.Result) bool {
	n := 0
	for _, value := range members(object) {
		if nested(value) {
			n++
		}
	}
	return n >= 3
}

// maxFactDepth limits the depth of nested objects and lists. Facts have a depth of four. Each level
// parses all of its contents again.
const maxFactDepth = 8

// flatten returns a row for each nested value. A list of plain values is one row.
func flatten(path string, value gjson.Result, depth int) (rows []factRow) {
	switch {
	case depth == 0:
		return []factRow{{path, clip(sanitize.Line(value.Raw))}}
	case value.IsObject():
		for name, below := range members(value) {
			rows = append(rows, flatten(strings.TrimSpace(path+" "+name), below, depth-1)...)
		}
	case value.IsArray():
		items := value.Array()
		if len(items) > 0 && !nested(items[0]) {
			return []factRow{{path, strings.Join(texts(items), ", ")}}
		}
		for i, item := range items {
			name := named(item, i)
			within := strings.TrimSpace(path + " " + name)
			rows = append(rows, slices.DeleteFunc(flatten(within, item, depth-1),
				func(r factRow) bool { return r.Name == within+" name" && r.Value == name })...)
		}
	default:
		if text := shownFact(value); text != "" {
			return []factRow{{path, text}}
		}
	}
	return rows
}

// named returns the name of an item in a list, or its number.
func named(item gjson.Result, i int) string {
	for name, value := range members(item) {
		if name == "name" {
			return shownFact(value)
		}
	}
	return fmt.Sprint(i + 1)
}

func texts(values []gjson.Result) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = shownFact(v)
	}
	return all
}

// shownFact returns a string as it is, and a number with all of its digits.
func shownFact(value gjson.Result) string {
	if value.Type == gjson.String || value.Type == gjson.Null {
		return sanitize.Line(value.String())
	}
	return sanitize.Line(value.Raw)
}

func withSpaces(name string) string { return strings.ReplaceAll(name, "_", " ") }
