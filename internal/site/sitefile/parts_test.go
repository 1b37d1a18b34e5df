package sitefile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestParts(t *testing.T) {
	text := large(1500)
	if n := len(parts([]byte(text))); n != 4 {
		t.Fatalf("%d parts", n)
	}
	var want map[string]any
	if err := toml.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	got, err := unmarshal([]byte(text))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Error("parts are not the whole", err)
	}
	line := strings.Count(text, "\n") + 1
	for more, wrong := range map[string]string{
		"[node.n0]\n":     fmt.Sprintf("site.toml:%d: this is not TOML: table n0 already exists", line),
		"[a]\nx = 1\nx=2": fmt.Sprintf("site.toml:%d: this is not TOML: key x is already defined", line+2),
		"[b]\nid=1x":      fmt.Sprintf("site.toml:%d: this is not TOML: ", line+1),
	} {
		l := newLoader(nowhere())
		l.load([]byte(text + more))
		if list := l.report.list(); len(list) != 1 || !strings.HasPrefix(list.Error(), wrong) {
			t.Errorf("%v, not %s", list, wrong)
		}
	}
}
