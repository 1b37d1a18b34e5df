package internal

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ofDistributions matches programs that differ between distributions. "apt" alone is not included,
// because it is also a key of site files.
var ofDistributions = regexp.MustCompile(
	`\b(apt-get|apt-cache|mmdebstrap|debootstrap|dpkg|dpkg-[a-z]+|systemctl|journalctl|policy-rc\.d)\b`)

// wordsOfHosts are the packages and files that may contain these names, each with the reason.
var wordsOfHosts = map[string]string{
	"internal/host/outfit":             "what is installed on the host",
	"internal/host/doctor":             "what the host is to install, and whether it has it",
	"internal/image/archive/unpack.go": "a cure on the host",
	"internal/host/enter/launch.go":    "a cure on the host",
	"internal/engine/disk/program.go":  "a cure on the host",
	"internal/host/qemu":               "cures on the host",
	"internal/host/xl":                 "cures on the host",
	"internal/volume":                  "timers of the host, and cures on it",
	"internal/host/schedule":           "timers of the host",
	"internal/control/pkgmirror":       "the archive that it makes is one for apt",
	"internal/cli":                     "help and examples",
	"internal/control/nodes/logs.go":   "the journal that nodes are asked for",
}

// TestDistributions: only package distro knows the differences between distributions. See "A
// distribution" in CONTRIBUTING.
func TestDistributions(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(pkg, path string, f *ast.File) {
		if pkg == "site/distro" {
			return
		}
		for prefix := range wordsOfHosts {
			if path == prefix || strings.HasPrefix(path, prefix+"/") {
				path = prefix
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(l.Value)
			word := ofDistributions.FindString(text)
			switch {
			case err != nil || word == "":
			case wordsOfHosts[path] != "":
				used[path] = true
			default:
				t.Errorf("%s: %q is a word of some distributions: let package distro say it, or list the file with the reason",
					path, word)
			}
			return true
		})
	})
	for path := range wordsOfHosts {
		if !used[path] {
			t.Errorf("%s says no such word any more: take it from the list", path)
		}
	}
}
