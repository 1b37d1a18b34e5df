package sitefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/site/spec"
)

// FuzzRole checks that no role.toml, template or requirements file makes Load or spec.Builder panic
// or loop endlessly.
func FuzzRole(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*valid-role-*.toml")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, "{{range .Nodes}}{{.Name}} {{.Address}}\n{{end}}",
			"aiokatcp==1.8.0 \\\n  --hash=sha256:00\nnumpy[extra]==1.26 ; python_version > \"3\" --hash=sha256:11\n")
	}
	f.Add([]byte("file = [{path='/a', template='a.tmpl'}]\n"),
		`{{define "a"}}{{if lt (len .) 9}}{{template "a" (printf "%s%-9d" . 1)}}{{end}}{{end}}{{template "a" "x"}}{{join "," (select "role=x")}}`,
		"-r x\n")
	f.Add([]byte("file = [{path='/a', template='a.tmpl'}]\n"),
		`{{$x := "x"}}{{range 99}}{{range $.Nodes}}{{$x = print $x (json .)}}{{break}}{{end}}{{end}}{{quote $x}}{{html $x}}`,
		"a==1\na==2\n\\")
	f.Fuzz(func(t *testing.T, roleToml []byte, template, pins string) {
		// The fuzzer does not detect an endless loop.
		defer time.AfterFunc(20*time.Second, func() {
			panic(fmt.Sprintf("no end with %q %q %q", roleToml, template, pins))
		}).Stop()
		d := nowhere()
		d.files["pins.txt"] = []byte(pins)
		l := newLoader(d)
		var role roleFile
		if l.decode(l.report.roleFile("x"), roleToml, &role) {
			l.site.Roles = append(l.site.Roles, l.roleOf("x", &role,
				map[string][]byte{"setup.sh": nil, "sub/a.tmpl": []byte(template), "a.tmpl": []byte(template)}))
		}
		l.load([]byte("site.name = \"test\"\nimage.debian.suite = \"bookworm\"\nsecret.known.generate = 32\nnetwork.lan.subnet = \"10.0.0.0/8\"\n" +
			"defaults.requirements = \"pins.txt\"\n[node.\"n{1..50}\"]\nid = 1\nroles = [\"x\"]\n"))
		for _, p := range l.report.list() {
			if p.What == "" || p.Error() == "" {
				t.Errorf("%#v", p)
			}
		}
		if len(l.report.mistakes) > 0 {
			return
		}
		maker := spec.NewBuilder(l.site)
		for i := range l.site.Nodes {
			if _, err := maker.Node(&l.site.Nodes[i]); err != nil {
				return
			}
		}
	})
}
