package register

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/twin"
	"orrery/internal/treesync/sitearchive"
)

// A ReleaseRecord is stored beside the copy of a release's site directory. It records who staged
// the release and when.
type ReleaseRecord struct {
	Number int       `json:"number"`
	Notes  string    `json:"notes,omitempty"`
	Staged time.Time `json:"staged"`
	Who    string    `json:"who"`
	Dir    string    `json:"dir"` // the site directory that was copied
	// Images are the stamps of imported images by name, if the site has other hosts. The copy of
	// the site directory then lacks their files.
	Images map[string]string `json:"images,omitempty"`
}

func (r Register) releaseSite(key string, number int) string {
	return filepath.Join(r.Dirs.Release(key, number), sitearchive.Site)
}

// LoadRelease returns the site as defined by a release that was staged on this host. It reads the
// copy of the site directory from that time, so that a release never changes.
func (r Register) LoadRelease(s *site.Site, number int) (*site.Site, error) {
	if len(s.Nodes) > 0 && s.Nodes[0].Release == number { // a twin of this release, or no release at all
		return s, nil
	}
	dir := r.releaseSite(s.Key(), number)
	if _, err := os.Stat(dir); err != nil {
		return nil, problem.New(problem.Mistake, "release %d of site %s was not staged on this host", number, s.Key()).
			Try("orrery stage --release %d", number)
	}
	record, err := r.ReadReleaseRecord(s.Key(), number)
	var made *site.Site
	if err == nil {
		made, err = r.storedRelease(s, dir, record.Dir, record.Images, number)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "release %d of site %s: its copy of the site directory cannot be read",
			number, s.Key()).At(dir).Because(err).
			Try("stage it again under another number")
	}
	return made, nil
}

// ReleaseOf returns the site as defined by a release. The edition of the release is in dir.
// Relative file names are those of the site directory home.
func (r Register) ReleaseOf(s *site.Site, dir, home string, number int) (*site.Site, error) {
	record, err := host.ReadJSON[ReleaseRecord](filepath.Join(dir, sitearchive.Record))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r.storedRelease(s, filepath.Join(dir, sitearchive.Site), home, record.Images, number)
}

// storedRelease returns a release of a site, or of its twin, from a copy of the site directory in
// dir. The copy was made from home.
func (r Register) storedRelease(s *site.Site, dir, home string, images map[string]string, number int) (*site.Site,
	error) {
	images = maps.Clone(images)
	// images may come from another host: use only stamps that identify content
	maps.DeleteFunc(images, func(_, stamp string) bool { return (&site.Image{Stamp: stamp}).ContentDigest() == "" })
	kept, err := sitefile.LoadStamped(dir, cmp.Or(home, dir), images)
	switch {
	case err != nil:
		return nil, err
	case s.Twin != "":
		return r.AsTwin(kept, s.Twin, number)
	}
	return twin.Release(kept, number)
}

// ReleaseNumber parses the number of a release. "next" is the highest one that the site declares.
func ReleaseNumber(s *site.Site, text string) (int, error) {
	switch text {
	case "":
		return 0, problem.New(problem.Usage, "no release given").
			Try("use --release 701, or --release next for the highest declared release")
	case "next":
		highest := 0
		for _, r := range s.Releases {
			highest = max(highest, r.Number)
		}
		if highest == 0 {
			return 0, problem.New(problem.Mistake, "site %s declares no release", s.Name).At("site.toml").Try("[release.700]")
		}
		return highest, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		return 0, problem.New(problem.Usage, "%q is not a release number", text).
			Try(`use --release 701, for example, or --release next`)
	}
	return number, nil
}

// StoreRelease stores a copy of the site directory from which a release is staged. It replaces a
// former copy atomically, and only if the copy defines the same release.
func (r Register) StoreRelease(s, staged *site.Site, number int, from, who string) error {
	to := r.Dirs.Release(s.Key(), number)
	fresh := filepath.Join(r.Dirs.Releases(s.Key()), "."+strconv.Itoa(number)+"-new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil { // users of the host may have no access to the site directory
		return err
	}
	images := imageHashes(s)
	if err := r.copySite(s, staged, from, filepath.Join(fresh, sitearchive.Site), images, number); err != nil {
		return err
	}
	record := ReleaseRecord{Number: number, Staged: time.Now().UTC().Truncate(time.Second), Who: who, Dir: from,
		Images: images}
	for _, declared := range s.Releases {
		if declared.Number == number {
			record.Notes = declared.Notes
		}
	}
	if err := host.WriteJSON(filepath.Join(fresh, sitearchive.Record), 0o600, record); err != nil {
		return err
	}
	// the copies of volumes beside them stay
	return host.ReplaceParts(fresh, to, sitearchive.Site, sitearchive.Record)
}

// imageHashes returns the stamps of images that are identified by content, or nil if there are none.
func imageHashes(s *site.Site) (stamps map[string]string) {
	for _, img := range s.Images {
		if img.ContentDigest() == "" {
			continue
		}
		if stamps == nil {
			stamps = map[string]string{}
		}
		stamps[img.Name] = img.Stamp
	}
	return stamps
}

// copySite copies a site directory and verifies that the copy defines the same site.
func (r Register) copySite(s, staged *site.Site, from, to string, images map[string]string, number int) error {
	keep := sitefile.Copy
	if images != nil {
		keep = sitefile.CopyText
	}
	if _, err := keep(from, to); err != nil {
		return problem.New(problem.Failed, "the site directory cannot be copied for release %d", number).At(from).Because(err)
	}
	kept, err := r.storedRelease(s, to, from, images, number)
	if err != nil {
		return problem.New(problem.Failed, "the copy of the site directory for release %d cannot be read", number).At(to).
			Because(err)
	}
	what, err := release.Difference(staged, kept)
	if err == nil && what != "" {
		err = problem.New(problem.Surprise,
			"the site directory has changed while release %d was planned: %s; nothing was done", number, what).
			Try("run the same command again")
	}
	return err
}

// ReadReleaseRecord returns who staged a release and when. If the release was not staged on this
// host, these fields are empty.
func (r Register) ReadReleaseRecord(key string, number int) (ReleaseRecord, error) {
	record, err := host.ReadJSON[ReleaseRecord](filepath.Join(r.Dirs.Release(key, number), sitearchive.Record))
	record.Number = number
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return record, err
}

// ReleaseNames returns the distinct releases of nodes as text.
func ReleaseNames(of map[string]int) string {
	var words []string
	for _, n := range slices.Compact(slices.Sorted(maps.Values(of))) {
		words = append(words, site.ReleaseName(n))
	}
	if len(words) == 0 {
		return site.ReleaseName(0)
	}
	return strings.Join(words, " and ")
}
