package strict

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"orrery/internal/problem"
)

const text = `title = "x" # line 1

[server.deep]          # 3
list = [
  1,                   # 5
  { a = 1,
    b = 2 },           # 7
]
[server]
port = 1               # 10
[[step]]
name = "one"           # 12
[[step]]               # 13
name = "two"
dotted.key = 3         # 15
`

func TestLines(t *testing.T) {
	root, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	steps := root.At("step").Items
	for want, n := range map[int]*Node{
		1: root.At("title"), 3: root.At("server").At("deep"), 5: root.At("server").At("deep").At("list").Items[0],
		7: root.At("server").At("deep").At("list").Items[1].At("b"), 9: root.At("server"), 10: root.At("server").At("port"),
		12: steps[0].At("name"), 13: steps[1], 15: steps[1].At("dotted").At("key"),
	} {
		if n.Line != want {
			t.Errorf("line %d, not %d, of %v", n.Line, want, n.Value)
		}
	}
	if got := root.Order; !reflect.DeepEqual(got, []string{"title", "server", "step"}) {
		t.Error(got)
	}
	if all := root.Descendants(); root.At("nothing") != root || !all[steps[1].At("dotted").At("key")] || all[root] ||
		root.Subset("title").Descendants()[steps[0]] {
		t.Error("At, Within or Only")
	}
}

// TestAgrees checks that the tree has the values that go-toml returns, for any file.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			text += rapid.SampledFrom([]string{
				"a = 1\n", "b.c = [1, [2, {x = 3}]]\n", "[t]\n", "[t.u]\n", "[[v]]\n", "[[v.w]]\n", "[v.y]\n",
				"k = {a = 1, b.c = 2}\n", "'' = 'x'\n", "d = 1979-05-27\n", "\n", "b.d = nan\n",
			}).Draw(t, "line")
		}
		var want map[string]any
		if toml.Unmarshal([]byte(text), &want) != nil {
			return
		}
		root, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := fmt.Sprint(again(root, strings.Count(text, "\n")+1, t)); got != fmt.Sprint(want) {
			t.Fatalf("%q:\ngot  %v\nwant %v", text, got, want)
		}
	})
}

// again rebuilds the values from the tree alone.
func again(n *Node, lines int, t *rapid.T) any {
	if n.Line < 1 || n.Line > lines {
		t.Fatalf("line %d of %d", n.Line, lines)
	}
	switch n.Value.(type) {
	case map[string]any:
		all := map[string]any{}
		for _, key := range n.Order {
			all[key] = again(n.Keys[key], lines, t)
		}
		return all
	case []any:
		all := []any{}
		for _, item := range n.Items {
			all = append(all, again(item, lines, t))
		}
		return all
	}
	return n.Value
}

func TestTwoStructures(t *testing.T) {
	var own struct {
		Kind string `toml:"kind"`
	}
	var options struct {
		Small int8           `toml:"small,omitempty"`
		Time  time.Duration  `toml:"time"`
		Ratio *float64       `toml:"ratio"`
		Any   any            `toml:"any"`
		Times map[string]int `toml:"times"`
		Rest  *Node          `toml:"rest"`
		Plain int
	}
	root, _ := Parse([]byte("kind = 'x'\nsmall = 200\ntime = '2m'\nratio = 2\nany = [1]\ntimes = {a = 1, b = 'x'}\nrest.of = 1\nPlain = 3\nsmal = 1\nknd = 1\n"))
	var told []string
	Table(root, "", func(at *Node, p *problem.Problem) { told = append(told, fmt.Sprintf("%d: %v", at.Line, p)) }, &own,
		&options)
	want := []string{
		"2: small = 200 is too large",
		"6: times.b must be a whole number, not \"x\"",
		"8: unknown key \"Plain\" (known: any, kind, ratio, rest, small, time, times)",
		"9: unknown key \"smal\" (did you mean \"small\"?)",
		"10: unknown key \"knd\" (did you mean \"kind\"?)",
	}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if own.Kind != "x" || options.Time != 2*time.Minute || *options.Ratio != 2 || options.Times["a"] != 1 ||
		options.Rest.At("of").Value != int64(1) {
		t.Errorf("%+v %+v", own, options)
	}
	if got := Keys(&own, &options); fmt.Sprint(got) != "[any kind ratio rest small time times]" {
		t.Error(got)
	}
}

// TestTags: tags and types determine defaults, forms and positions of fields.
func TestTags(t *testing.T) {
	type inner struct {
		Name string
		Line int
		Mode uint32        `toml:"mode" default:"0644" unit:"mode"`
		Size int64         `toml:"size" unit:"size"`
		Time time.Duration `toml:"time" default:"5s"`
		On   bool          `toml:"on" default:"true"`
		Most int           `toml:"most" default:"3"`
	}
	var into struct {
		Tables Tables[inner] `toml:"tables"`
		Once   inner         `toml:"once"`
		Never  inner         `toml:"never"`
		Subnet netip.Prefix  `toml:"subnet"`
	}
	root, _ := Parse([]byte("subnet = '10.0.0.0/8'\n[tables.a]\nmode = '600'\nsize = '1KiB'\non = false\n[once]\nmost = 1\ntime = 's'\nmode = 1\n"))
	var told []string
	Table(root, "", func(at *Node, p *problem.Problem) { told = append(told, fmt.Sprintf("%d: %v", at.Line, p)) }, &into)
	want := []string{
		`8: time: "s" is not a duration (write "500ms" or "2m")`,
		`9: mode: a mode must be a string of octal digits, not 1 (write "0644")`,
	}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("%q", told)
	}
	usual := inner{Mode: 0o644, Time: 5 * time.Second, On: true, Most: 3}
	once := usual
	once.Most, once.Line = 1, 6
	usual.Line = 1
	if into.Never != usual || into.Once != once || into.Subnet.String() != "10.0.0.0/8" {
		t.Errorf("%+v", into)
	}
	if got := into.Tables.Values(); len(got) != 1 ||
		got[0] != (inner{Name: "a", Line: 2, Mode: 0o600, Size: 1024, Time: 5 * time.Second, Most: 3}) {
		t.Errorf("%+v", got)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"90s": "1m30s", "1d": "24h0m0s", "7d12h": "180h0m0s", "36500d": "876000h0m0s", ".5h": "30m0s",
		"0d":     `"0d" is not a positive duration (write "500ms" or "2m")`,
		"1d-5h":  `"1d-5h" is not a duration (write "500ms" or "2m")`,
		"-1d":    `"-1d" is not a duration (write "500ms" or "2m")`,
		"36501d": `"36501d" is not a duration (write "500ms" or "2m")`,
		"1dd":    `"1dd" is not a duration (write "500ms" or "2m")`,
		"d":      `"d" is not a duration (write "500ms" or "2m")`,
	} {
		var d duration
		got := ""
		if p := d.Parse(text); p != nil {
			got = p.Error()
		} else {
			got = time.Duration(d).String()
		}
		if got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for value, want := range map[any]string{
		"512MiB": "536870912", "1.5 GiB": "1610612736", "2TiB": "2199023255552", "0": "0", int64(7): "7", "100": "100",
		"1G": `"1G" is not a size (write "1GiB")`, "1 MB": `"1 MB" is not a size (write "1MiB")`,
		"":        `"" is not a size (write "512MiB", "2GiB" or a number of bytes)`,
		"-1":      `"-1" is not a size (write "512MiB", "2GiB" or a number of bytes)`,
		"0x10":    `"0x10" is not a size (write "512MiB", "2GiB" or a number of bytes)`,
		"nan":     `"nan" is not a size (write "512MiB", "2GiB" or a number of bytes)`,
		"9e99":    `"9e99" is not a size (write "512MiB", "2GiB" or a number of bytes)`,
		int64(-1): "-1 is negative",
		true:      `a size must be a string or a number of bytes, not true (write "512MiB" or "2GiB")`,
	} {
		var s Size
		got := ""
		if p := s.Parse(value); p != nil {
			got = p.Error()
		} else {
			got = fmt.Sprint(int64(s))
		}
		if got != want {
			t.Errorf("%v: got %s, want %s", value, got, want)
		}
	}
	var s Size
	if p := s.Parse(fmt.Sprint(math.MaxInt64)); p == nil {
		t.Error("no bound")
	}
}

// TestParseMark: a byte order mark is not part of the text.
func TestParseMark(t *testing.T) {
	root, err := Parse([]byte("\xef\xbb\xbfkey = 1\nother = 2\n"))
	if err != nil || root.Keys["other"].Line != 2 || root.Order[0] != "key" {
		t.Errorf("%+v, %v", root, err)
	}
	if _, err = Parse([]byte("\xfe\xff\x00k")); err == nil || err.Line != 1 ||
		err.What != "it is encoded as UTF-16; save it as UTF-8" {
		t.Errorf("%v", err)
	}
}
