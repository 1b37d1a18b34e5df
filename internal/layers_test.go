package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers are the packages in order. Each package imports only packages of the layers before its
// own.
var layers = [][]string{
	{"text/pattern"},
	{"text/sanitize", "text/humanize", "text/shell", "site/cycles", "strict/jsonlimit", "site/pins", "tree/rawfile"},
	{"strict/jsonlimit/jsonattack", "host/process", "text/alike"},
	{"problem", "tree", "host/holders"},
	{"transport/frame", "strict", "guest/boot", "host/waits", "image/sums"},
	{"site/service", "site/traffic", "site/diskio", "site/device"},
	{"site", "site/event"},
	{"site/distro", "site/params", "site/secretspec", "site/feature", "observe/sriov"},
	{"site/selector", "site/check", "site/render", "site/spec", "site/sitefile", "site/inventory", "site/graph",
		"site/twin", "observe", "observe/routine"},
	{"observe/drill", "plan/vfs"},
	{"plan/kernel", "plan/stand", "plan/rotation", "plan/place", "plan/handover", "plan/orphan", "plan/clash",
		"plan/overlay", "plan", "plan/wayback", "plan/pack", "plan/boot", "plan/brief", "plan/diff", "plan/release"},
	{"host"},
	{"host/pci", "host/sriov", "host/numa", "host/qemu", "host/xl", "host/fork", "host/staging", "host/shape",
		"host/devices"},
	{"host/cgroup", "host/seccomp", "host/doctor", "host/outfit", "host/schedule", "host/login", "host/path",
		"host/reach", "host/runnertest", "host/hostsfile", "host/nodecopy", "transport/rpc", "transport/transfer",
		"treesync"},
	{"host/twins", "host/enter", "host/whohas"},
	{"image/rootfs", "image/archive", "image/access", "treesync/chunks", "treesync/sitearchive", "image/imported",
		"network/ends"},
	{"network/wireguard", "network/passthrough"},
	{"network/vxlan", "network/kind"},
	{"network/ports"},
	{"guest/agent"},
	{"image", "role", "network", "volume", "secret", "journal"},
	{"journal/hook"},
	{"engine", "engine/nodedir", "engine/confine", "engine/disk", "engine/vm", "engine/kvm/qmp"},
	{"engine/lxc", "engine/kvm", "engine/xen", "engine/fake", "engine/enginetest"},
	{"engine/all", "rehearsal"},
	{"snapshot"},
	{"backup/vault"},
	{"backup"},
	{"backup/ferry"},
	{"drift"},
	{"apply"},
	{"apply/filling"},
	{"apply/local", "apply/remote"},
	{"control/pkgmirror", "control/testrun", "control/rolefetch"},
	{"lab/stats", "lab/search", "lab/spead", "lab/facts", "lab/probe", "lab/place"},
	{"member"},
	{"lab/test"},
	{"lab/experiment"},
	{"lab/bundle", "lab/suspect", "lab/setting"},
	{"lab/report/quantity", "lab/report/trace"},
	{"lab/report/draw"},
	{"lab/report"},
	{"lab/report/history", "lab/prove"},
	{"lab/run"},
	{"control/trial", "control/register", "control/guard"},
	{"control/here"},
	{"control/hosts"},
	{"control/unattended"},
	{"control"},
	{"control/status", "control/fill", "control/secrets"},
	{"control/releases"},
	{"control/overdue"},
	{"control/sites"},
	{"control/way", "control/twins"},
	{"control/ci", "control/lab", "control/nodes", "control/members", "control/draft",
		"control/sshconfig"},
	{"control/roster", "control/volumes", "control/layers", "control/snapshots"},
	{"control/backups", "control/rehearsals", "control/services"},
	{"control/routines"},
	{"cli/screen", "cli/reply", "cli/value"},
	{"cli/table", "cli/completion"},
	{"cli/verb"},
	{"cli/siteverb", "cli/lifeverb", "cli/dataverb", "cli/releaseverb", "cli/nodeverb", "cli/hostverb", "cli/labverb"},
	{"cli"},
}

// within are packages of one layer that may import each other, in order.
var within = [][]string{
	{"site/selector", "site/render", "site/spec", "site/twin", "site/check", "site/inventory", "site/sitefile"},
	{"site/spec", "observe"},
	{"engine", "engine/nodedir", "engine/vm"},
	{"engine/confine", "engine/disk", "engine/vm"},
	{"plan/kernel", "plan/stand", "plan/rotation", "plan/place", "plan/handover", "plan/orphan", "plan/clash",
		"plan/overlay", "plan", "plan/wayback", "plan/pack", "plan/boot", "plan/brief", "plan/diff", "plan/release"},
}

// pure packages make decisions without side effects. They must not import packages that have some.
var pure = map[string][]string{
	"site":           {"os", "net", "os/exec", "net/http"},
	"site/selector":  {"os", "net", "os/exec", "net/http"},
	"site/check":     {"os", "net", "os/exec", "net/http"},
	"site/render":    {"os", "net", "os/exec", "net/http"},
	"site/device":    {"os", "net", "os/exec", "net/http"},
	"site/diskio":    {"os", "net", "os/exec", "net/http"},
	"site/traffic":   {"os", "net", "os/exec", "net/http"},
	"site/feature":   {"os", "net", "os/exec", "net/http"},
	"site/spec":      {"os", "net", "os/exec", "net/http"},
	"site/inventory": {"os", "net", "os/exec", "net/http"},
	"site/graph":     {"os", "net", "os/exec", "net/http"},
	"site/twin":      {"os", "net", "os/exec", "net/http"},
	"observe":        {"os", "net", "os/exec", "net/http"},
	"plan/handover":  {"os", "net", "os/exec", "net/http"},
	"plan/wayback":   {"os", "net", "os/exec", "net/http"},
	"plan/pack":      {"os", "net", "os/exec", "net/http"},
	"plan/boot":      {"os", "net", "os/exec", "net/http"},
	"plan/brief":     {"os", "net", "os/exec", "net/http"},
	"plan/diff":      {"os", "net", "os/exec", "net/http"},
	"plan/rotation":  {"os", "net", "os/exec", "net/http"},
	"plan/stand":     {"os", "net", "os/exec", "net/http"},
	"plan/vfs":       {"os", "net", "os/exec", "net/http"},
	"plan/kernel":    {"os", "net", "os/exec", "net/http"},
	"plan/orphan":    {"os", "net", "os/exec", "net/http"},
	"plan/place":     {"os", "net", "os/exec", "net/http"},
	"plan/overlay":   {"os", "net", "os/exec", "net/http"},
	"plan/release":   {"os", "net", "os/exec", "net/http"},
	"plan":           {"os", "net", "os/exec", "net/http"},
	"lab/stats":      {"os", "net", "os/exec", "net/http"},
	"lab/search":     {"os", "net", "os/exec", "net/http"},

	"site/secretspec": {"os", "net", "os/exec", "net/http"},
	"engine/kvm/argv": {"os", "net", "os/exec", "net/http"},
}

// beneath are packages that user interfaces may use only through package control.
var beneath = []string{"engine", "image", "volume", "network", "snapshot", "backup", "role", "drift", "apply/local"}

// TestFaces: a user interface, such as the command line, knows the operations of a site, but not
// their implementation.
func TestFaces(t *testing.T) {
	eachFile(t, func(pkg, path string, f *ast.File) {
		if pkg != "cli" && !strings.HasPrefix(pkg, "cli/") {
			return
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			other, _ := strings.CutPrefix(name, "orrery/internal/")
			if slices.ContainsFunc(beneath, func(p string) bool { return other == p || strings.HasPrefix(other, p+"/") }) {
				t.Errorf("%s: a face must not import %s: control has the operations", path, other)
			}
		}
	})
}

// TestOneWayToHosts: operations use a host as an apply.Host, whether it is this machine or a remote
// host. Only package control/here opens this machine as one.
func TestOneWayToHosts(t *testing.T) {
	opens := 0
	eachFile(t, func(pkg, path string, f *ast.File) {
		if pkg != "control" && !strings.HasPrefix(pkg, "control/") {
			return
		}
		for _, i := range f.Imports {
			switch name, _ := strconv.Unquote(i.Path.Value); {
			case name == "orrery/internal/apply/local" && path == "internal/control/here/machine.go":
				opens++
			case name == "orrery/internal/apply/local":
				t.Errorf("%s: an operation must not know how steps are done on this machine: what it needs of a host is in apply.Host",
					path)
			}
		}
	})
	if opens != 1 {
		t.Errorf("control opens this machine in %d files", opens)
	}
}

func TestLayers(t *testing.T) {
	depth := map[string]int{}
	for i, layer := range layers {
		for _, p := range layer {
			depth[p] = i
		}
	}
	seen := map[string]bool{}
	eachFile(t, func(pkg, path string, f *ast.File) {
		mine, ok := depth[top(pkg, depth)]
		if !ok {
			t.Errorf("package %s is in no layer: add it to the list in internal/layers_test.go", pkg)
			return
		}
		seen[pkg] = true
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if slices.Contains(pure[pkg], name) {
				t.Errorf("%s: package %s is pure and must not import %s", path, pkg, name)
			}
			other, ours := strings.CutPrefix(name, "orrery/internal/")
			if !ours || top(other, depth) == top(pkg, depth) {
				continue
			}
			if its, ok := depth[top(other, depth)]; ok && its >= mine && !neighbours(other, pkg) {
				t.Errorf("%s: package %s must not import %s", path, pkg, other)
			}
		}
	})
	if len(seen) < 15 {
		t.Errorf("only %d packages were found", len(seen))
	}
}

// TestNoClock: pure packages do not read the clock.
func TestNoClock(t *testing.T) {
	eachFile(t, func(pkg, path string, f *ast.File) {
		if _, ok := pure[pkg]; !ok {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep"}, s.Sel.Name) {
					t.Errorf("%s: package %s is pure and must not call time.%s", path, pkg, s.Sel.Name)
				}
			}
			return true
		})
	})
}

// neighbours reports whether an order of within has both packages, the first before the second.
func neighbours(first, second string) bool {
	return slices.ContainsFunc(within, func(order []string) bool {
		i, j := slices.Index(order, first), slices.Index(order, second)
		return i >= 0 && j > i
	})
}

// top returns the listed package that a package belongs to: itself or one of its parents.
func top(pkg string, depth map[string]int) string {
	for p := pkg; p != "."; p = filepath.Dir(p) {
		if _, ok := depth[p]; ok {
			return p
		}
	}
	return pkg
}

// eachFile calls do for all files of the program except tests.
func eachFile(t *testing.T, do func(pkg, path string, f *ast.File)) {
	t.Helper()
	eachFileOf(t, ".", func(path string, f *ast.File) { do(filepath.Dir(path), "internal/"+path, f) })
}

// eachFileOf calls do for all files below a directory except tests, with their relative paths.
func eachFileOf(t *testing.T, top string, do func(path string, f *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err == nil {
			do(path, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
