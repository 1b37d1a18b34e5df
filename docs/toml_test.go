package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"orrery/internal/site/sitefile"
)

var roleHeader = regexp.MustCompile(`^# roles/([a-z0-9-]+)/role\.toml`)

// TestFiles loads every site and role file of the documents, with stand-ins for the files that they name.
func TestFiles(t *testing.T) {
	checked := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.info != "toml" {
				continue
			}
			checked++
			t.Run(fmt.Sprintf("%s:%d", p.path, b.line), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "site")
				if m := roleHeader.FindStringSubmatch(b.lines[0]); m != nil {
					roleDirectory(t, dir, m[1], b.text())
				} else {
					siteDirectory(t, dir, b.text())
				}
				if _, err := sitefile.Load(dir); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if checked < 3 {
		t.Errorf("only %d files were found", checked)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var all map[string]any
	if err := toml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// found returns all texts that stand under some key, at whatever depth.
func found(x any, key string) []string {
	var all []string
	switch x := x.(type) {
	case map[string]any:
		for k, value := range x {
			if k == key {
				all = append(all, texts(value)...)
			}
			all = append(all, found(value, key)...)
		}
	case []any:
		for _, value := range x {
			all = append(all, found(value, key)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func texts(x any) []string {
	switch x := x.(type) {
	case string:
		return []string{x}
	case []any:
		var all []string
		for _, value := range x {
			all = append(all, texts(value)...)
		}
		return all
	}
	return nil
}

// siteDirectory makes the site directory that a site file needs.
func siteDirectory(t *testing.T, dir, text string) {
	all := parse(t, text)
	put(t, dir, "site.toml", text)
	if all["extends"] != nil {
		put(t, dir, "../site.toml", extendedSite)
	}
	roles := append(found(all["node"], "roles"), found(all, "simulated_by")...)
	if releases, ok := all["release"].(map[string]any); ok {
		for _, r := range releases {
			substitutes, _ := r.(map[string]any)["roles"].(map[string]any)
			for _, other := range substitutes {
				roles = append(roles, texts(other)...)
			}
		}
	}
	for _, role := range roles {
		put(t, dir, "roles/"+role+"/role.toml", "")
	}
	for _, file := range found(all, "requirements") {
		put(t, dir, file, "aiokatcp==2.0.0\n")
	}
	if volumes, ok := all["volume"].(map[string]any); ok {
		var uses strings.Builder
		for name := range volumes {
			fmt.Fprintf(&uses, "[[volume]]\nname = %q\npath = \"/srv/%s\"\n", name, name)
		}
		put(t, dir, "roles/stand-in/role.toml", uses.String())
	}
	for _, file := range found(all, "authorized_keys") {
		put(t, dir, file, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE\n")
	}
	for _, file := range found(all["image"], "import") {
		put(t, dir, file, "")
	}
	for _, file := range found(all["mirror"], "ca") {
		put(t, dir, file, "")
	}
	for _, file := range found(all["mirror"], "key") {
		put(t, dir, file, "-----BEGIN PGP PUBLIC KEY BLOCK-----\n")
	}
}

// extendedSite is the site file that those of the documents extend.
const extendedSite = `[site]
name = "karoo"
[image.debian]
suite = "bookworm"
[network.cam]
subnet = "10.8.67.0/24"
gateway = "10.8.67.1"
[node.portal]
id = 101
pin = "0"
[node.gateway]
id = 102
[backup]
to = "/srv/backups"
every = "1d"
`

var wantedRole = regexp.MustCompile(`role=([a-z0-9-]+)`)

// roleDirectory makes the site directory in which a role file is used by a node.
func roleDirectory(t *testing.T, dir, name, text string) {
	all := parse(t, text)
	put(t, dir, "roles/"+name+"/role.toml", text)
	for _, key := range []string{"source", "template", "run"} {
		for _, file := range found(all, key) {
			put(t, dir, "roles/"+name+"/"+file, "")
		}
	}
	site := "site.name = \"docs\"\nimage.debian.suite = \"bookworm\"\n"
	pins := ""
	for _, x := range texts(all["pip"]) {
		pins += x + "==1.0\n"
	}
	put(t, dir, "pins.txt", pins)
	for _, x := range found(all["secret"], "name") {
		site += fmt.Sprintf("secret.%s.generate = 32\n", x)
	}
	site += fmt.Sprintf("node.one = { id = 1, roles = [%q], requirements = \"pins.txt\" }\n", name)
	for _, role := range append(found(all["needs"], "roles"), found(all, "simulated_by")...) {
		put(t, dir, "roles/"+role+"/role.toml", "")
	}
	for i, m := range wantedRole.FindAllStringSubmatch(strings.Join(found(all["needs"], "healthy"), " "), -1) {
		put(t, dir, "roles/"+m[1]+"/role.toml", "")
		site += fmt.Sprintf("node.peer%d = { id = %d, roles = [%q] }\n", i, i+2, m[1])
	}
	put(t, dir, "site.toml", site)
}
