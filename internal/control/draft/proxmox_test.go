package draft

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestImportProxmox: containers of Proxmox VE become a site, and what it has no place for is named.
func TestImportProxmox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kat")
	files, _ := filepath.Glob("testdata/proxmox/*.conf")
	archive, err := filepath.Abs("testdata/proxmox/vzdump-lxc-101-2026_11_20-02_00_01.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	made, paths, err := ImportProxmox(dir, "", append(files, archive))
	if err != nil {
		t.Fatal(err)
	}
	wantImported(t, dir, made, paths, "testdata/proxmox/want.txt", strings.NewReplacer(filepath.Dir(archive), "/backups"))
	for _, id := range []string{"102", "103"} { // the backups that are still to be made
		if err := os.WriteFile(filepath.Join(dir, "vzdump-lxc-"+id+".tar.zst"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := sitefile.Load(dir); err != nil || len(s.Nodes) != 3 || s.Name != "kat" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, _, err := ImportProxmox(dir, "", files); !problem.Is(err, problem.Usage) {
		t.Errorf("a second time: %v", err)
	}
}

// TestImportProxmoxRefuses: what is no configuration of a container is refused, and nothing is written.
func TestImportProxmoxRefuses(t *testing.T) {
	top := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(top, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(top, "7.conf")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(top, "again")
	if err := os.Mkdir(again, 0o700); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		files []string
		want  string
	}{
		"none":           {nil, "no configuration"},
		"only a backup":  {[]string{file("vzdump-lxc-9-x.tar", "")}, "no configuration"},
		"no id":          {[]string{file("web.conf", "")}, "not named after a container"},
		"a large id":     {[]string{file("1000000.conf", "")}, "not named after a container"},
		"gone":           {[]string{filepath.Join(top, "8.conf")}, "cannot be read"},
		"a pipe":         {[]string{pipe}, "cannot be read"},
		"a directory":    {[]string{again}, "not named after a container"},
		"endless":        {[]string{file("10.conf", strings.Repeat("x: y\n", 1<<18))}, "larger than allowed"},
		"no key":         {[]string{file("11.conf", "hostname: a\nnonsense\x1b[2J\n")}, `11.conf:2`},
		"a machine":      {[]string{file("12.conf", "name: a\nscsi0: local:vm-12-disk-0\n")}, "virtual machine"},
		"the same twice": {[]string{file("13.conf", ""), file("again/13.conf", "")}, "given twice"},
	} {
		dir := filepath.Join(top, "site")
		done := make(chan error, 1)
		go func() { _, _, err := ImportProxmox(dir, "", c.files); done <- err }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it hangs", what)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%s: something was written", what)
		}
	}
}

// FuzzImportProxmox: whatever a configuration contains, the site file that is written is TOML, and
// its mistakes are reported as such.
func FuzzImportProxmox(f *testing.F) {
	f.Add("hostname: a\"b\nnet0: bridge=v\"m,ip=10.0.0.1/8,gw=10.0.0.2\nmp0: /a\x00b,mp=/c\"d\ntags: a;;b\n")
	f.Add("hostname: ../../x\nnet0: bridge=b,tag=x,ip=10.0.0.1/0\nnet1: bridge=b,ip=10.0.0.2/0\nmemory: -1\ncores: NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		top := t.TempDir()
		path := filepath.Join(top, "5.conf")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(top, "site")
		_, paths, err := ImportProxmox(dir, "", []string{path})
		if err != nil {
			return
		}
		for _, path := range paths {
			if !strings.HasPrefix(path, dir+"/") {
				t.Errorf("it wrote %s", path)
			}
		}
		if _, err := sitefile.Load(dir); err != nil && strings.Contains(err.Error(), "not TOML") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
