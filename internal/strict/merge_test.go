package strict

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawTables writes a file with tables two levels deep. Keys with the same name are of the same type in
// every file. It returns the file and the lines of its values, by dotted key.
func drawTables(t *rapid.T, name string) (root *Node, lines map[string]int) {
	var text strings.Builder
	lines = map[string]int{}
	line := 1
	add := func(format string, args ...any) {
		fmt.Fprintf(&text, format+"\n", args...)
		line++
	}
	words := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID[string])
	for range rapid.IntRange(0, 3).Draw(t, "blank lines") {
		add("")
	}
	for _, table := range words.Draw(t, "tables") {
		add("[%s]", table)
		for _, key := range words.Draw(t, "keys") {
			lines[table+"."+key] = line
			add("%s = [%q]", key, name)
		}
		for _, inner := range words.Draw(t, "inner tables") {
			add("[%s.in-%s]", table, inner)
			for _, key := range words.Draw(t, "inner keys") {
				lines[table+".in-"+inner+"."+key] = line
				add("%s = %q", key, name)
			}
		}
	}
	root, wrong := Parse([]byte(text.String()))
	if wrong != nil {
		t.Fatal(wrong, text.String())
	}
	root.SetFile(name)
	return root, lines
}

// TestMerge: a merged table has the values of both with their positions, and those of the second one win.
// Merging is associative, and an empty table changes nothing.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, linesOfA := drawTables(t, "a")
		b, linesOfB := drawTables(t, "b")
		c, _ := drawTables(t, "c")
		both := Merge(a, b)
		all := maps.Clone(linesOfA)
		maps.Copy(all, linesOfB)
		for key, line := range all {
			path := strings.Split(key, ".")
			at, n := both.Find(path...)
			file := "a"
			if linesOfB[key] != 0 {
				file = "b"
			}
			if n != len(path) || at.File != file || at.Line != line || !strings.Contains(fmt.Sprint(at.Value), file) {
				t.Errorf("%s is %v at %s:%d and not at %s:%d", key, at.Value, at.File, at.Line, file, line)
			}
		}
		checkValues(t, both)
		if left, right := Merge(both, c), Merge(a, Merge(b, c)); !reflect.DeepEqual(left.Value, right.Value) {
			t.Errorf("%v and %v", left.Value, right.Value)
		}
		empty, _ := Parse(nil)
		for _, same := range []*Node{Merge(a, empty), Merge(empty, a)} {
			if !reflect.DeepEqual(same.Value, a.Value) || !slices.Equal(same.Order, a.Order) {
				t.Errorf("%v is not %v", same.Value, a.Value)
			}
		}
		for key := range all {
			path := strings.Split(key, ".")
			if !both.Remove(path...) || both.Remove(path...) {
				t.Errorf("%s cannot be removed once", key)
			}
			if _, n := both.Find(path...); n == len(path) {
				t.Errorf("%s is still there", key)
			}
		}
		checkValues(t, both)
	})
}

// checkValues checks that the value of each table is that of its keys.
func checkValues(t *rapid.T, n *Node) {
	value, ok := n.Value.(map[string]any)
	if !ok {
		return
	}
	if len(value) != len(n.Keys) || len(value) != len(n.Order) {
		t.Errorf("%v has the keys %v in the order %v", value, n.Keys, n.Order)
	}
	for key, child := range n.Keys {
		if !reflect.DeepEqual(value[key], child.Value) {
			t.Errorf("%s is %v and not %v", key, value[key], child.Value)
		}
		checkValues(t, child)
	}
}

// TestMergeTypes: a value of another type replaces a table, and a list replaces a list.
func TestMergeTypes(t *testing.T) {
	base, _ := Parse([]byte("x = {a = 1}\ny = 1\nl = [1, 2]\n"))
	over, _ := Parse([]byte("x = 3\ny = {b = 2}\nl = [3]\n"))
	want := map[string]any{"x": int64(3), "y": map[string]any{"b": int64(2)}, "l": []any{int64(3)}}
	if got := Merge(base, over); !reflect.DeepEqual(got.Value, want) || len(got.Keys["l"].Items) != 1 {
		t.Errorf("%v", got.Value)
	}
	if base.Remove("x", "a", "b") || base.Remove("z", "a") {
		t.Error("something that does not exist was removed")
	}
}
