package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/hosts"
	"orrery/internal/control/sites"
	"orrery/internal/image/imported"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// importing is a site on two hosts with an imported image. The archive is on the first machine, and
// the second host needs it and has no copy.
const importing = twoHosts + "[release.700]\n[release.701]\n"

func imports(file string) string {
	return strings.Replace(importing, `suite = "bookworm"`, "import = \""+file+"\"", 1)
}

// TestFarImports: an imported image is the same wherever the control host has its file. The file is
// sent to the host that needs it. Another control host with a copy changes nothing.
func TestFarImports(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", imports("root.tar"))
	d.write("root.tar", "an archive")
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	built := 0
	for _, s := range p.Steps {
		if s.Kind == plan.BuildLayer && s.Layer.IsBase() {
			built++
		}
	}
	if built != 1 {
		t.Errorf("the image is built %d times", built)
	}
	d.up()
	s := d.site()
	_, err = hosts.HashImages(t.Context(), s)
	d.must(err)
	base := spec.Base(s.Mirror, s.Images[0])
	if !other.of("toykat").Observe().Layers[base.Digest] ||
		s.Images[0].ContentDigest() != imported.DigestOf([]byte("an archive")) {
		t.Errorf("host sv2 has not got the layer of %+v", s.Images[0])
	}

	e := newDesk(t)
	e.machine.others = map[string]*machine{"sv1": d.machine, "sv2": other}
	e.write("else/where.tar", "an archive")
	elsewhere := strings.Replace(imports("else/where.tar"), `address = "local"`, `address = "10.8.1.1"`, 1)
	e.write("site.toml", elsewhere)
	p, err = sites.Preview(t.Context(), e.Session, nil, sites.PreviewOptions{})
	if err != nil || !p.Empty() {
		t.Fatalf("a plan from elsewhere: %v\n%v\ntold: %s", err, p, e.watch.text())
	}
	e.write("else/where.tar", "another archive")
	p, err = sites.Preview(t.Context(), e.Session, nil, sites.PreviewOptions{})
	if err != nil || p.Empty() {
		t.Fatalf("another archive changes nothing: %v", err)
	}
	e.up() // neither host has this file, so it is sent
	e.must(os.Remove(filepath.Join(e.dir, "else/where.tar")))
	_, err = sites.Preview(t.Context(), e.Session, nil, sites.PreviewOptions{})
	e.wantExit(err, problem.Mistake, "file ", "where.tar does not exist")
}

// TestFarImportReleases: a release uses the file that it was staged from. Its stored copy has the
// digest but not the file, which is not needed as long as a host has the layer.
func TestFarImportReleases(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", imports("root.tar"))
	d.write("root.tar", "an archive")
	d.up()
	d.stage(700)
	kept, _ := filepath.Glob(filepath.Join(other.dirs.Release("toykat", 700), "site/*"))
	if len(kept) == 0 || strings.Contains(strings.Join(kept, " "), "root.tar") {
		t.Errorf("kept are %v", kept)
	}
	d.write("root.tar", "another archive")
	d.turnTo(700)
	d.wantSame(700)
	f, err := d.Hosts(t.Context(), d.site())
	d.must(err)
	first := f.Views().Releases()[700].Images[0]
	if first.ContentDigest() != imported.DigestOf([]byte("an archive")) || filepath.IsAbs(first.Import) {
		t.Errorf("the release is of %+v", first)
	}
	// No host has its layer any more, and this machine has another file.
	h := f.All[1]
	step := &plan.Step{Kind: plan.BuildLayer, Host: "sv2", Layer: spec.Base(site.Mirror{}, first)}
	d.wantExit(h.Do(t.Context(), step, func(string) {}), problem.Unable, "is not what [image] imports now",
		first.ContentDigest())
	d.write("old.tar", "an archive")
	d.write("site.toml", imports("old.tar"))
	f, err = d.Hosts(t.Context(), d.site())
	d.must(err)
	d.must(f.All[1].Do(t.Context(), step, func(string) {}))
}

// TestImportsOfStrangers: a host that stores the copy of a release says what is imported. It cannot
// obtain a file of this machine that way.
//
// Promise (Other hosts): No host gets a file of the control host by claiming that a release imports
// it; a received file is the intended one, or is not kept. With image.TestNotReceived.
func TestImportsOfStrangers(t *testing.T) {
	d, _ := farDesk(t)
	own := filepath.Join(t.TempDir(), "secret.tar")
	if err := os.WriteFile(own, []byte("of this machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("site.toml", imports("root.tar"))
	d.write("root.tar", "an archive")
	d.up()
	d.stage(700)
	f, err := d.Hosts(t.Context(), d.site())
	d.must(err)
	dir := filepath.Join(t.TempDir(), "700")
	d.must(f.Editions().Fetch(t.Context(), 700, mustDir(t, dir)))
	digest := `{"images": {"debian": "sha256:` + imported.DigestOf([]byte("of this machine")) + `"}}`
	for record, file := range map[string]string{"{}": own, `{"images": {"debian": "1-2"}}`: own, digest: own,
		digest + " ": "/"} {
		d.must(os.WriteFile(filepath.Join(dir, "release.json"), []byte(record), 0o600))
		d.must(os.WriteFile(filepath.Join(dir, "site/site.toml"), []byte(imports(file)), 0o600))
		d.must(d.Connector(d.site()).Releases(f).Store(t.Context(), 700, dir)) // even if the release is trusted
		made, err := d.Connector(d.site()).Releases(f).Load(t.Context(), 700)
		d.must(err)
		_, err = hosts.HashImages(t.Context(), made)
		d.must(err)
		step := &plan.Step{Kind: plan.BuildLayer, Layer: spec.Base(site.Mirror{}, made.Images[0])}
		for _, h := range f.All {
			step.Host = h.Name
			d.wantExit(h.Do(t.Context(), step, func(string) {}), problem.Unable)
		}
	}
}

func mustDir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
