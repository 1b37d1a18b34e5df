package sitefile

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"orrery/internal/problem"
)

func TestImportINI(t *testing.T) {
	in, err := os.Open("testdata/karoo.ini")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	made, err := ImportINI(in, "karoo.ini", "")
	if err != nil {
		t.Fatal(err)
	}
	content := made.Content
	got := string(content) + "\n--- not placed:\n" + strings.Join(made.Lost, "\n") + "\n--- to do:\n" +
		strings.Join(made.ToDo, "\n") + "\n"
	if *update {
		if err := os.WriteFile("testdata/karoo.want", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/karoo.want")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}

	var mistakes problem.List
	if _, err := Load(siteDir(t, map[string]string{"site.toml": string(content)})); !errors.As(err, &mistakes) {
		t.Fatal("nobody misses the roles")
	}
	for _, p := range mistakes {
		if !strings.HasPrefix(p.What, "role ") || !strings.HasSuffix(p.What, " does not exist") {
			t.Error(p)
		}
	}
	files := map[string]string{"site.toml": string(content)}
	for _, role := range []string{"portal", "web", "db", "receptor"} {
		files["roles/"+role+"/role.toml"] = ""
	}
	s, err := Load(siteDir(t, files))
	if err != nil {
		t.Fatal(err)
	}
	portal, _ := s.Node("portal")
	if portal.ID != 101 || s.Releases[0].Number != 700 || portal.Host != "kat-sv1" ||
		portal.NICs[0].Address.String() != "192.168.193.11" {
		t.Errorf("%+v", portal)
	}
}

// TestImportedValues: values may refer to others, but neither in a cycle nor without a size limit.
func TestImportedValues(t *testing.T) {
	doubled := "[a]\nip = 10.0.0.1\n"
	for i := range 60 {
		doubled += fmt.Sprintf("k%d = %%(k%d)s%%(k%d)s\n", i, i+1, i+1)
	}
	for text, want := range map[string]string{
		"[a]\nip = %(b)s\nb = %(c)s\nc = %(b)s\n":    "ip of [a] refers to itself",
		doubled + "k60 = x\n":                        "refers to itself, or is longer than 65536 bytes",
		"[DEFAULT]\nnet=10.0.0\n[a]\nip=%(net)s.7\n": "",
	} {
		made, err := ImportINI(strings.NewReader(text), "hosts.ini", "")
		content := ""
		if err == nil {
			content = string(made.Content)
		}
		if want == "" && (err != nil || !strings.Contains(content, "10.0.0.7")) || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v\n%s", text, err, content)
		}
	}
}

// TestImportTaken: if an id, address or name is taken, the message names its user.
func TestImportTaken(t *testing.T) {
	text := "[one.karoo]\nctid = 700101\nip = 10.0.0.1\n[two]\nctid = 701101\nip = 10.0.0.1\n[three]\nctid = many\ngateway = 10.0.0.254\nip = 10.0.0.254\n"
	made, err := ImportINI(strings.NewReader(text), "hosts.ini", "")
	if err != nil {
		t.Fatal(err)
	}
	lost := strings.Join(made.Lost, "\n")
	for _, want := range []string{
		"hosts.ini:5: [two] ctid = 701101: [one.karoo] in line 2 already has the id 101; the node gets a free one",
		"hosts.ini:6: [two] ip = 10.0.0.1: 10.0.0.1 is used by [one.karoo] in line 3; the node gets 10.0.0.2",
		"hosts.ini:8: [three] ctid = many: not an id",
		"hosts.ini:10: [three] ip = 10.0.0.254: 10.0.0.254 is used by the gateway of network lan; the node gets 10.0.0.3",
	} {
		if !strings.Contains(lost, want) {
			t.Errorf("%q is not among\n%s", want, lost)
		}
	}
	if len(made.Lost) != 4 || !strings.Contains(string(made.Content), "# the first free one") {
		t.Errorf("lost:\n%s\n%s", lost, made.Content)
	}
}
