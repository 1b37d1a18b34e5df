package docs_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"orrery/internal/site/graph"
	"orrery/internal/site/sitefile"
)

var update = flag.Bool("update", false, "write the picture of the README anew")

const quickstartPicture = "docs/images/quickstart.svg"

// TestQuickstart: the files in the README are those of the example, the site file has fifteen lines, and the picture is
// what orrery graph draws of it when all of it is healthy. That the command itself draws this is
// seen by TestTour, on the real site.
func TestQuickstart(t *testing.T) {
	dir := filepath.Join(root, "examples/quickstart")
	text, err := os.ReadFile(filepath.Join(dir, "site.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines != 15 {
		t.Errorf("the site file has %d lines, and the README says fifteen", lines)
	}
	for _, name := range []string{"site.toml", "roles/worker/role.toml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		same := func(b block) bool {
			return b.info == "toml" && strings.TrimPrefix(b.text(), "# "+name+"\n") == string(text)
		}
		if !slices.ContainsFunc(one(t, "README.md").blocks, same) {
			t.Errorf("%s in the README is not that of examples/quickstart", name)
		}
	}
	s, err := sitefile.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := graph.Picture{Site: s, Host: "local", Seen: map[string]graph.NodeState{}}
	for i := range s.Nodes {
		p.Nodes = append(p.Nodes, &s.Nodes[i])
		p.Seen[s.Nodes[i].Name] = graph.NodeState{Health: graph.Good, Word: "healthy"}
	}
	drawn := graph.Draw(p)
	if *update {
		if err := os.WriteFile(filepath.Join(root, quickstartPicture), drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(drawn, picture(t)) {
		t.Errorf("%s is not what is drawn of examples/quickstart; go test ./docs -run TestQuickstart -update writes it anew",
			quickstartPicture)
	}
}

// picture returns the picture of the README.
func picture(t *testing.T) []byte {
	t.Helper()
	shown, err := os.ReadFile(filepath.Join(root, quickstartPicture))
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// TestMap: every document is on the map and in the menu of the website.
func TestMap(t *testing.T) {
	text := one(t, "docs/README.md").text
	menu, err := os.ReadFile(filepath.Join(root, "packaging/site/mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t) {
		name, inDocs := strings.CutPrefix(p.path, "docs/")
		if !inDocs || filepath.Dir(name) == "decisions" {
			continue
		}
		if !strings.Contains(string(menu), " docs/"+name+"\n") {
			t.Errorf("packaging/site/mkdocs.yml does not have %s", name)
		}
		if name != "README.md" &&
			!regexp.MustCompile(`\]\(`+regexp.QuoteMeta(name)+`[#)]`).MatchString(text) {
			t.Errorf("docs/README.md does not lead to %s", name)
		}
	}
	examples, _ := filepath.Glob(root + "/examples/*/")
	for _, dir := range examples {
		if !strings.Contains(text, "(../examples/"+filepath.Base(dir)+")") {
			t.Errorf("docs/README.md does not lead to examples/%s", filepath.Base(dir))
		}
	}
}
