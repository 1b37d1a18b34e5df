package jsonlimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"orrery/internal/strict/jsonlimit"
	"orrery/internal/strict/jsonlimit/jsonattack"
)

type base struct {
	Site string `json:"site"`
	ID   int    `json:"id"`
}

// More is embedded through a pointer.
type More struct {
	Extra [64]int64 `json:"extra,omitempty"`
}

// A node is as large as the nodes of hosts.
type node struct {
	base
	*More
	State   string              `json:"state"`
	Links   []link              `json:"links,omitempty"`
	Config  map[string]string   `json:"config,omitempty"`
	Limits  map[string][]int    `json:"limits,omitempty"`
	Proven  time.Time           `json:"proven"`
	Address netip.Prefix        `json:"address"`
	Next    *node               `json:"next,omitempty"`
	Bytes   []byte              `json:"bytes,omitempty"`
	Raw     json.RawMessage     `json:"raw,omitempty"`
	Any     any                 `json:"any,omitempty"`
	Fixed   [3]*link            `json:"fixed"`
	Deep    [][]map[string]link `json:"deep,omitempty"`
	Hidden  int                 `json:"-"`
	Plain   []int
}

type link struct {
	Name string   `json:"name"`
	Many []string `json:"many,omitempty"`
}

// TestHostile: whatever part of a type a text repeats, decoding it uses no more memory than its
// length allows.
//
// Promise (Other hosts): Answers of hosts, guests, QEMU and programs in nodes take memory bounded
// by their length, whatever they describe. With strict/jsonlimit.TestDepth,
// apply/remote.TestCostlyAnswers, apply/remote.TestCostlyHost, internal.TestDecodes.
func TestHostile(t *testing.T) {
	const size = 1 << 20
	refused := 0
	for name, text := range jsonattack.Texts(reflect.TypeFor[map[string][]node](), size) {
		into := new(map[string][]node)
		took, err := live(func() error { return jsonlimit.Unmarshal(text, into) })
		if most := jsonlimit.Free + jsonlimit.Factor*len(text) + 32<<10; took > most {
			t.Errorf("%s: %d bytes of JSON took %d, and may take %d", name, len(text), took, most)
		}
		if errors.Is(err, jsonlimit.ErrTooCostly) {
			refused++
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.KeepAlive(into)
	}
	if refused < 20 {
		t.Errorf("only %d texts were refused", refused)
	}
}

// live returns how many bytes do has allocated that are still in use.
func live(do func() error) (int, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	err := do()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int(after.HeapAlloc) - int(before.HeapAlloc), err
}

// TestNames: the cost of a field does not depend on how its name is written.
func TestNames(t *testing.T) {
	elements := strings.TrimSuffix(strings.Repeat("{},", 100_000), ",")
	for _, name := range []string{"next", "NEXT", "Next", `n\u0065xt`, `nEx\u0054`} {
		// A long s (ſ) equals an s in a case-insensitive comparison.
		text := fmt.Sprintf(`{"%s":{"linkſ":[%s]}}`, name, elements)
		if err := jsonlimit.Unmarshal([]byte(text), new(node)); !errors.Is(err, jsonlimit.ErrTooCostly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for what, text := range map[string]string{
		"what is not known":            `{"unknown":[` + elements + `]}`,
		"a list where there is a text": `{"state":[` + elements + `]}`,
		"what is never decoded":        `{"Hidden":[` + elements + `],"-":[` + elements + `]}`,
	} {
		if err := jsonlimit.Unmarshal([]byte(text), new(node)); errors.Is(err, jsonlimit.ErrTooCostly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDepth: a deeply nested text is rejected.
func TestDepth(t *testing.T) {
	for _, into := range []any{new(any), new(node), new([]string)} {
		for _, piece := range []string{"[", `{"next":`, `{"any":`} {
			text := strings.Repeat(piece, 100_000)
			if err := jsonlimit.Unmarshal([]byte(text), into); err == nil {
				t.Errorf("%T: %s…: no error", into, piece)
			}
		}
	}
}

// texts generates JSON and similar text.
func texts() *rapid.Generator[string] {
	leaf := rapid.SampledFrom([]string{"null", "true", "1", "-1.5e3", `""`, `"a\"]}"`, `"2026-01-02T03:04:05Z"`,
		`"10.0.0.0/8"`, `"\ud800"`, "{}", "[]", "", "x", `"`})
	names := rapid.SampledFrom([]string{"site", "id", "extra", "links", "LINKS", "config", "limits", "next", "raw",
		"any", "fixed", "deep", "name", "many", "Plain", "x", `\u0069d`})
	var value func(deep int) *rapid.Generator[string]
	value = func(deep int) *rapid.Generator[string] {
		if deep == 0 {
			return leaf
		}
		space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
		return rapid.OneOf(leaf,
			rapid.Custom(func(t *rapid.T) string {
				return "[" + strings.Join(rapid.SliceOfN(value(deep-1), 0, 4).Draw(t, "list"), space.Draw(t, "space")+",") + "]"
			}),
			rapid.Custom(func(t *rapid.T) string {
				var all []string
				for range rapid.IntRange(0, 4).Draw(t, "fields") {
					all = append(all, `"`+names.Draw(t, "name")+`"`+space.Draw(t, "space")+":"+value(deep-1).Draw(t, "value"))
				}
				return "{" + strings.Join(all, ",") + "}"
			}))
	}
	return value(5)
}

// TestSame: a text that is not rejected is decoded as by encoding/json.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(texts().Draw(t, "text"))
		for _, to := range []reflect.Type{reflect.TypeFor[node](), reflect.TypeFor[[]node](), reflect.TypeFor[any](),
			reflect.TypeFor[map[string]*link]()} {
			limited, plain := reflect.New(to), reflect.New(to)
			err, want := jsonlimit.Unmarshal(text, limited.Interface()), json.Unmarshal(text, plain.Interface())
			if fmt.Sprint(err) != fmt.Sprint(want) || !reflect.DeepEqual(limited.Interface(), plain.Interface()) {
				t.Fatalf("%s: %v, %v; encoding/json: %v, %v", text, limited, err, plain, want)
			}
		}
	})
}

// FuzzUnmarshal: no text makes Unmarshal panic, hang, or use more memory than its length allows.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range []string{`{"links":[{},{}]}`, `[{"next":{"any":[1,"x",{}]}}]`, `{"a`, `[,]`,
		`{"deep":[[{"x":{"many":[""]}}]]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, into := range []any{new(node), new([]node), new(any), new(map[string]node)} {
			took, _ := live(func() error { return jsonlimit.Unmarshal(text, into) })
			if most := jsonlimit.Free + jsonlimit.Factor*len(text) + 32<<10; took > most {
				t.Errorf("it took %d bytes and may take %d", took, most)
			}
			runtime.KeepAlive(into)
		}
	})
}
