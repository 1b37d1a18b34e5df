package draft

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestImportCompose: five services become a site that orrery check accepts, and what it has no place
// for is named with its line.
func TestImportCompose(t *testing.T) {
	converted(t, ImportCompose, "testdata/compose/docker-compose.yml", "testdata/compose/want.txt")
}

// TestImportComposeRefuses: a file that is not one of Docker Compose is refused, and so is one whose
// aliases mean more than it has.
func TestImportComposeRefuses(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		level := string(rune('0' + i))
		next := string(rune('1' + i))
		bomb += "a" + next + ": &a" + next + " [" + strings.Repeat("*a"+level+", ", 9) + "*a" + level + "]\n"
	}
	merges := "m0: &m0 {A: b}\n"
	for i := range 9 {
		level := string(rune('0' + i))
		next := string(rune('1' + i))
		merges += "m" + next + ": &m" + next + " {<<: [" + strings.Repeat("*m"+level+", ", 9) + "*m" + level + "]}\n"
	}
	refused(t, ImportCompose, map[string][2]string{
		"empty":         {"", "the file is empty"},
		"no services":   {"hosts:\n  a: b\n", ":1"},
		"not YAML":      {"services:\n  a: [\n", "this is not YAML"},
		"UTF-16":        {"\xff\xfes\x00", "encoded as UTF-16"},
		"escapes":       {"services: \"\x1b[2J\n", "this is not YAML"},
		"a key twice":   {"services:\n  a:\n    image: x\n    image: y\n", ":4: image is set twice, first in line 3"},
		"a list as key": {"services:\n  ? [a]\n  : {}\n", ":2: a key is not a word"},
		"too long":      {strings.Repeat("#", maxSource+1), "cannot be read"},
		"merges":        {merges + "services:\n  a:\n    environment:\n      <<: *m9\n", "more than 200000 values"},
		"itself":        {"services:\n  a:\n    environment: &e\n      <<: *e\n", "more than 32 levels deep"},
		"many services": {"services: {" + "a: {}, " + manyServices() + "}\n", "more than 5000 services"},
	})
	// Aliases that nothing reads mean nothing.
	dir := t.TempDir()
	file := dir + "/file"
	if err := os.WriteFile(file, []byte(bomb+"services: {a: {image: x, labels: *a9}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made, _, err := ImportCompose(dir+"/site", "", file); err != nil || len(made.Lost) != 11 {
		t.Errorf("%+v, %v", made, err)
	}
}

func manyServices() string {
	var b strings.Builder
	for i := range maxConverted {
		fmt.Fprintf(&b, "s%d: {}, ", i)
	}
	return b.String()
}

// FuzzImportCompose: see fuzzed.
func FuzzImportCompose(f *testing.F) {
	text, err := os.ReadFile("testdata/compose/docker-compose.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("services: {\"a\\\"b\\n\": {environment: {A: \"\\x1b\\\"\"}, ports: [\"1:2\", 3], volumes: [\"a:/b:ro\", {}]}}\n")
	f.Add("services: &s {a: *s, b: {<<: *s, networks: {x: {ipv4_address: 1.2.3.4}}, scale: 3, cpus: NaN, mem_limit: 1e9}}\n")
	fuzzed(f, ImportCompose)
}
