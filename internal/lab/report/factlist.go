package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/visible"
)

// A factGroup is a part of facts.json as the page shows it; the first, without a name, has what is not nested.
type factGroup struct {
	Name string
	Open bool
	Rows []factRow
}

type factRow struct{ Name, Value string }

// facts lists what facts.json holds, in its order: each member that is an object or a list of them becomes a group, and so does each member
// of an object of objects, such as those of several hosts.
func facts(text json.RawMessage) (groups []factGroup) { return factGroups("", text, 2) }

func factGroups(title string, text json.RawMessage, depth int) (groups []factGroup) {
	const short = 14 // rows that are shown at once
	title = visible.Line(title)
	plain := factGroup{Name: spoken(title), Open: true}
	for _, m := range object(text) {
		name := strings.TrimSpace(title + " " + m.name)
		rows := flatten("", m.value, deepest)
		switch {
		case depth > 1 && collection(m.value):
			groups = append(groups, factGroups(name, m.value, depth-1)...)
		case nested(m.value) && len(rows) > 1:
			groups = append(groups, factGroup{Name: spoken(name), Rows: rows, Open: len(rows) <= short})
		case len(rows) == 1:
			plain.Rows = append(plain.Rows, factRow{spoken(strings.TrimSpace(m.name + " " + rows[0].Name)), rows[0].Value})
		}
	}
	if len(plain.Rows) > 0 {
		groups = append([]factGroup{plain}, groups...)
	}
	return groups
}

// collection reports whether an object is made of at least three others.
func collection(value json.RawMessage) bool {
	n := 0
	for _, m := range object(value) {
		if nested(m.value) {
			n++
		}
	}
	return n >= 3
}

// A member of a JSON object; encoding/json's maps forget their order.
type member struct {
	name  string
	value json.RawMessage
}

func object(text json.RawMessage) (all []member) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return all
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return all
		}
		all = append(all, member{visible.Line(fmt.Sprint(name)), value})
	}
	return all
}

func nested(value json.RawMessage) bool { return value[0] == '{' || value[0] == '[' }

// deepest is how many objects and lists one in another are taken apart: facts have four, and each costs reading all that is in it again.
const deepest = 8

// flatten gives a row for each value below; lists of plain values are one row.
func flatten(path string, value json.RawMessage, depth int) (rows []factRow) {
	if depth == 0 {
		return []factRow{{path, clip(visible.Line(string(value)))}}
	}
	switch value[0] {
	case '{':
		for _, m := range object(value) {
			rows = append(rows, flatten(strings.TrimSpace(path+" "+m.name), m.value, depth-1)...)
		}
		return rows
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil || len(items) == 0 {
			return nil
		}
		if !nested(items[0]) {
			return []factRow{{path, strings.Join(texts(items), ", ")}}
		}
		for i, item := range items {
			name := named(item, i)
			within := strings.TrimSpace(path + " " + name)
			rows = append(rows, slices.DeleteFunc(flatten(within, item, depth-1), func(r factRow) bool { return r.Name == within+" name" && r.Value == name })...)
		}
		return rows
	}
	if text := texts([]json.RawMessage{value})[0]; text != "" {
		return []factRow{{path, text}}
	}
	return nil
}

// named is what an item of a list calls itself, or its number.
func named(item json.RawMessage, i int) string {
	for _, m := range object(item) {
		if m.name == "name" {
			return texts([]json.RawMessage{m.value})[0]
		}
	}
	return fmt.Sprint(i + 1)
}

func texts(values []json.RawMessage) []string {
	all := make([]string, len(values))
	for i, v := range values {
		if json.Unmarshal(v, &all[i]) != nil {
			all[i] = string(v)
		}
		all[i] = visible.Line(all[i])
	}
	return all
}

func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }
