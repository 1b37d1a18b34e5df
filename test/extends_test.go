package test

import (
	"path/filepath"
	"testing"
)

// TestExtends: a lab whose site file extends that of production runs beside it, and follows its changes.
func TestExtends(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-extends", `
[network.lan]
subnet = "10.99.188.0/24"
[image.debian]
suite = "bookworm"
[node."web{1..2}"]
id    = 11
roles = ["greeter"]
`, released())
	s.write("lab/site.toml", `extends = ".."
remove = ["node.web{1..2}"]
[site]
name = "it-extends-lab"
[network.lan]
subnet = "10.99.189.0/24"
[node.web1]
id    = 11
roles = ["greeter"]
`)
	lab := *s
	lab.name, lab.dir = "it-extends-lab", filepath.Join(s.dir, "lab")
	t.Cleanup(lab.end)
	s.do("up")
	lab.do("up")
	lab.run("status").want(0, `lan=10\.99\.189\.`)
	lab.settled()
	s.settled()

	s.edit("site.toml", `roles = ["greeter"]`, "roles = [\"greeter\"]\npids = 500")
	s.run("plan").want(10, "web2")
	lab.run("plan").want(0)
	s.edit("site.toml", `"bookworm"`, "\"bookworm\"\npackages = [\"less\"]")
	lab.run("plan").want(10, "web1")
	s.do("up")
	lab.do("up")
	lab.settled()

	s.edit("site.toml", "packages", "pakages")
	lab.run("check").want(3, `\.\./site\.toml:\d+: unknown key "pakages"`)
	lab.run("exec", "web1", "--", "true").want(0, `\.\./site\.toml`)
	s.edit("site.toml", "pakages", "packages")
	lab.do("down")
	s.settled()
	s.do("down")
}
