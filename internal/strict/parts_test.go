package strict

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// TestParts: a large file is parsed in parts, with the same values as the whole file.
func TestParts(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "[node.n%d]\nid = %d\nroles = [\"one\", \"two\"]\nnet.lan = \"auto\"\n", i, i)
	}
	content := []byte(b.String())
	if n := len(parts(content)); n < 3 {
		t.Fatalf("%d parts", n)
	}
	var want map[string]any
	if err := toml.Unmarshal(content, &want); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(content)
	if err != nil || !reflect.DeepEqual(got.Value, any(want)) {
		t.Error("parts are not the whole", err)
	}
}
