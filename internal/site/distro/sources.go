package distro

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/pattern"
	"orrery/internal/tree"
)

// A Source is an archive for apt.
type Source struct {
	URI        string
	Suite      string
	Components []string
	// Key is the file with the keys that may sign the archive, or an armoured key itself. If it is
	// "", apt accepts any key that it trusts.
	Key string
}

// line returns the source as a line of sources.list.
func (s Source) line() string {
	signed := ""
	if s.Key != "" {
		signed = "[signed-by=" + s.Key + "] "
	}
	return fmt.Sprintf("deb %s%s %s %s", signed, s.URI, s.Suite, strings.Join(s.Components, " "))
}

// FormatSources returns sources in the form of sources.list, one per line.
func FormatSources(sources []Source) string {
	var b strings.Builder
	for _, s := range sources {
		b.WriteString(s.line() + "\n")
	}
	return b.String()
}

// pockets are the suffixes of a release's suites that are used by default. Other suites
// (-backports, -proposed) must be requested.
var pockets = []string{"", "-updates", "-security"}

// mirrored returns the sources of a suite on the site's mirrors, for hosts without a suitable
// source.
func (d *Distribution) mirrored(root, suite string, m site.Mirror) ([]Source, error) {
	if m.Apt == "" {
		return nil, problem.New(problem.Mistake, "this host has no package sources of %s for suite %s", d.Title, suite).
			Try("set them in site.toml, such as [mirror] apt = %q, security = %q; key = … if this host has no %s",
				d.Archive.Apt, d.Archive.Security, d.Keyring)
	}
	key := d.Keyring
	if _, err := os.Stat(filepath.Join(root, key)); err != nil {
		key = "" // apt uses the keys that it trusts, and reports an error if none fits
	}
	all := []Source{{URI: m.Apt, Suite: suite, Key: key}, {URI: m.Apt, Suite: suite + "-updates", Key: key}}
	if m.Security != "" {
		all = append(all, Source{URI: m.Security, Suite: suite + "-security", Key: key})
	}
	return all, nil
}

// Sources returns the package sources of an image. They are the host's own archives with the
// image's suite instead of the host's release. Mirrors of the site replace those archives. Argument
// root is "/" except in tests.
func Sources(root string, img site.Image, m site.Mirror) ([]Source, error) {
	d, suite := ForImage(img), img.Suite
	own, err := HostSources(root)
	if err != nil {
		return nil, err
	}
	release := OsRelease(root)["VERSION_CODENAME"]
	var found []Source
	if ForImage(site.Image{Suite: release}) == d {
		for _, s := range own {
			base, pocket := splitSuite(s.Suite)
			// The component "main" distinguishes the distribution's archives from others with the
			// same suite name (download.docker.com: "stable").
			if (base == release || slices.Contains(d.SuiteAliases, base)) && slices.Contains(s.Components, "main") &&
				slices.Contains(pockets, pocket) {
				s.Suite = suite + pocket
				found = append(found, s)
			}
		}
	}
	if len(found) == 0 {
		if found, err = d.mirrored(root, suite, m); err != nil {
			return nil, err
		}
	}
	found = slices.DeleteFunc(found, func(s Source) bool {
		_, pocket := splitSuite(s.Suite)
		return pocket != "" && slices.Contains(d.WithoutPockets, suite)
	})
	components := img.Components
	if len(components) == 0 {
		components = d.Components
	}
	for i := range found {
		found[i].Components = components
		_, pocket := splitSuite(found[i].Suite)
		from := m.Apt
		if pocket == "-security" {
			from = m.Security
		}
		if from == "" {
			continue
		}
		found[i].URI = from
		if len(m.Key) > 0 {
			found[i].Key = string(m.Key)
		}
	}
	return compact(found), nil
}

// compact removes duplicate sources. They arise if a host lists several mirrors and the site
// replaces all by one.
func compact(all []Source) []Source {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s Source) bool {
		key := s.URI + " " + s.Suite
		duplicate := seen[key]
		seen[key] = true
		return duplicate
	})
}

// splitSuite splits "bookworm-updates" into "bookworm" and "-updates".
func splitSuite(suite string) (base, pocket string) {
	base, after, ok := strings.Cut(suite, "-")
	if !ok {
		base, after, ok = strings.Cut(suite, "/") // buster/updates: the security suite until Debian 11
		if !ok {
			return suite, ""
		}
		if after == "updates" {
			return base, "-security"
		}
	}
	return base, "-" + after
}

// OsRelease returns the fields of os-release(5) of the system in a tree.
func OsRelease(root string) map[string]string {
	values := map[string]string{}
	in, err := tree.Open(root)
	if err != nil {
		return values
	}
	defer in.Close()
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		text, err := in.ReadFile(name, maxSettingsBytes)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				values[key] = strings.Trim(value, `"'`)
			}
		}
		break
	}
	return values
}

// maxSettingsBytes limits the size of a configuration file, because an image may come from a
// stranger.
const maxSettingsBytes = 1 << 20

// HostSources returns apt's sources on a machine or in an image, from sources.list and
// sources.list.d in both formats.
func HostSources(root string) ([]Source, error) {
	in, err := tree.Open(root)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const dir = "etc/apt/sources.list.d"
	files := []string{"etc/apt/sources.list"}
	names, err := in.Names(dir, 1<<12)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, end := range []string{".list", ".sources"} {
		for _, name := range names {
			if strings.HasSuffix(name, end) && !strings.HasPrefix(name, ".") {
				files = append(files, path.Join(dir, name))
			}
		}
	}
	var all []Source
	for _, file := range files {
		text, err := in.ReadFile(file, maxSettingsBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(file, ".sources") {
			all = append(all, parseStanzas(string(text))...)
		} else {
			all = append(all, parseLines(string(text))...)
		}
	}
	return all, nil
}

var oneLine = pattern.New(`^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*(.*)$`)

// parseLines parses sources in the one-line format.
func parseLines(text string) []Source {
	var all []Source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		m := oneLine().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		s := Source{URI: m[2], Suite: m[3], Components: strings.Fields(m[4])}
		for _, option := range strings.Fields(m[1]) {
			if key, ok := strings.CutPrefix(option, "signed-by="); ok && strings.HasPrefix(key, "/") {
				s.Key = strings.Split(key, ",")[0]
			}
		}
		all = append(all, s)
	}
	return all
}

// parseStanzas parses sources in the deb822 format.
func parseStanzas(text string) []Source {
	var all []Source
	for fields := range Paragraphs(text) {
		if !slices.Contains(strings.Fields(fields["types"]), "deb") ||
			slices.Contains([]string{"no", "false", "0", "off"}, strings.ToLower(fields["enabled"])) {
			continue
		}
		key := strings.TrimSpace(fields["signed-by"])
		if !strings.Contains(key, "BEGIN PGP") {
			key, _, _ = strings.Cut(key, "\n")
			if !strings.HasPrefix(key, "/") {
				key = "" // a fingerprint of a key that apt trusts anyway
			}
		}
		for _, uri := range strings.Fields(fields["uris"]) {
			for _, suite := range strings.Fields(fields["suites"]) {
				all = append(all, Source{URI: uri, Suite: suite, Components: strings.Fields(fields["components"]), Key: key})
			}
		}
	}
	return all
}
