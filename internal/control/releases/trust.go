package releases

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/tree"
	"orrery/internal/treesync/sitearchive"
)

// TrustOptions say which copy of a release is meant, and what to do with it.
type TrustOptions struct {
	Release int
	Host    string      // the host whose copy is meant, if hosts have different ones
	Digest  string      // the digest that the caller agreed to in advance, or "" to ask
	Into    string      // a new directory to store the copy in for review; then nothing is trusted
	Show    func(*Copy) // called before the question
}

// A Copy is the hosts' copy of a release, compared with the current site directory.
type Copy struct {
	Release int
	Hosts   []string // hosts that have it
	Digest  string
	Locked  string // digest in releases.lock, or ""
	Files   []FileDifference
}

// A FileDifference is how a file of the copy differs from the one in the site directory.
type FileDifference struct {
	Path  string
	Lines []string // "-" and a line of the site directory, "+" and one of the copy; nil if not text
}

// Trust shows the caller the hosts' copy of a release. After the caller has agreed, it writes the
// digest of that copy to releases.lock.
func Trust(ctx context.Context, c *control.Session, s *site.Site, o TrustOptions) (*Copy, error) {
	dir, err := os.MkdirTemp("", "orrery-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of no use any more
	call := c.Connector(s)
	f, silent, err := call.ConnectWithoutReleases(ctx)
	if err == nil {
		err = silent
	}
	if err != nil {
		return nil, err
	}
	lock, err := call.Releases(f).Lock()
	if err != nil {
		return nil, err
	}
	kept, err := fetch(ctx, f, o, filepath.Join(dir, "kept"))
	if err != nil {
		return nil, err
	}
	kept.Locked = lock.Digest(s.Twin, o.Release)
	if o.Into != "" {
		return kept, storeCopy(ctx, filepath.Join(dir, "kept", sitearchive.Site), o.Into)
	}
	if kept.Locked == kept.Digest {
		return kept, nil
	}
	if kept.Files, err = compare(ctx, call.Dir, dir); err != nil {
		return nil, err
	}
	o.Show(kept)
	if err := askConsent(c, s, o, kept); err != nil {
		return nil, err
	}
	_, err = call.Lock().Vouch(o.Release, kept.Digest)
	return kept, err
}

// fetch stores the selected copy in a directory.
func fetch(ctx context.Context, f *apply.Fleet, o TrustOptions, dir string) (*Copy, error) {
	all, err := f.Editions().Digests(ctx, o.Release)
	if err != nil {
		return nil, err
	}
	keep := map[string][]string{} // digest to hosts
	var from *apply.HostClient
	for i, h := range f.All {
		if digest := all[i][o.Release]; digest != "" && (o.Host == "" || o.Host == h.Name) {
			keep[digest], from = append(keep[digest], h.Name), h
		}
	}
	switch {
	case from == nil && o.Host != "":
		return nil, problem.New(problem.Mistake, "host %s has no readable copy of release %d", o.Host, o.Release).
			Try("omit --host")
	case from == nil:
		return nil, problem.New(problem.Mistake, "no host has a readable copy of release %d", o.Release).
			Try("orrery stage --release %d", o.Release)
	case len(keep) > 1:
		var who []string
		for _, names := range keep {
			who = append(who, strings.Join(names, " and "))
		}
		slices.Sort(who)
		return nil, problem.New(problem.Usage, "hosts have different copies of release %d: %s", o.Release,
			strings.Join(who, "; ")).
			Try("choose a copy with --host NAME; --into DIRECTORY stores it for review")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	digest, err := from.CopyEdition(ctx, o.Release, dir)
	if err == nil && len(keep[digest]) == 0 {
		err = apply.EditionMismatch(from.Name, o.Release)
	}
	return &Copy{Release: o.Release, Digest: digest, Hosts: keep[digest]}, err
}

// storeCopy stores a copy in a directory that does not exist yet.
func storeCopy(ctx context.Context, from, to string) error {
	content, err := readFiles(ctx, from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return problem.New(problem.Usage, "the copy cannot be stored").At(to).Because(problem.PathErrorCause(err)).
			Try("name a directory that does not exist yet")
	}
	root, err := tree.Open(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(content)) {
		f := tree.File{Path: name, Content: content[name], Uid: os.Geteuid(), Gid: os.Getegid(), Mode: 0o600}
		if err := root.Put(f, os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
	}
	return nil
}

// askConsent asks for the caller's consent.
func askConsent(c *control.Session, s *site.Site, o TrustOptions, kept *Copy) error {
	if o.Digest != "" {
		if o.Digest == kept.Digest {
			return nil
		}
		return problem.New(problem.Refused,
			"the stored copy of release %d has digest %s, not the one that you trust; nothing was done", o.Release,
			kept.Digest)
	}
	why := fmt.Sprintf(
		"Nodes of %s would be created from this copy of release %d, with its commands, volumes and secrets.", s.Name, o.Release)
	_, err := c.Confirmer.Ask(control.Question{About: control.Trust, Site: s.Name, Why: why})
	if err != nil {
		return problem.New(problem.Refused, "not confirmed; nothing was done").
			Try("type %s when asked, or use --digest %s", s.Name, kept.Digest)
	}
	return nil
}

// compare returns how the copy in a directory differs from the site directory.
func compare(ctx context.Context, siteDir, dir string) ([]FileDifference, error) {
	now := filepath.Join(dir, "now")
	if _, err := sitefile.CopyText(siteDir, now); err != nil {
		return nil, err
	}
	before, err := readFiles(ctx, now)
	if err != nil {
		return nil, err
	}
	after, err := readFiles(ctx, filepath.Join(dir, "kept", sitearchive.Site))
	if err != nil {
		return nil, err
	}
	var all []FileDifference
	for _, path := range fileNames(before, after) {
		if string(before[path]) != string(after[path]) || (before[path] == nil) != (after[path] == nil) {
			all = append(all, FileDifference{path, changedLines(before[path], after[path])})
		}
	}
	return all, nil
}

// fileNames returns the sorted names of the files in either directory.
func fileNames(before, after map[string][]byte) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	return slices.Sorted(maps.Keys(all))
}

// readFiles reads the files of a copy of a site directory.
func readFiles(ctx context.Context, dir string) (map[string][]byte, error) {
	root, err := tree.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := map[string][]byte{}
	return all, root.Walk(ctx, tree.DefaultBounds, func(e *tree.Entry) error {
		if e.IsDir() {
			return nil
		}
		content, err := root.ReadFile(e.Path, sitearchive.MaxBytes)
		all[e.Path] = append([]byte{}, content...) // never nil
		return err
	})
}

// changedLines returns how two texts differ, from the first line that differs to the last.
func changedLines(before, after []byte) (all []string) {
	if !utf8.Valid(before) || !utf8.Valid(after) {
		return nil
	}
	removed, added := splitLines(before), splitLines(after)
	for len(removed) > 0 && len(added) > 0 && removed[0] == added[0] {
		removed, added = removed[1:], added[1:]
	}
	for len(removed) > 0 && len(added) > 0 && removed[len(removed)-1] == added[len(added)-1] {
		removed, added = removed[:len(removed)-1], added[:len(added)-1]
	}
	for _, line := range removed {
		all = append(all, "-"+line)
	}
	for _, line := range added {
		all = append(all, "+"+line)
	}
	return all
}

// splitLines returns the lines of a text, or none if the file does not exist.
func splitLines(text []byte) []string {
	if text == nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}
