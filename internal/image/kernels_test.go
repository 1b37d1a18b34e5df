package image

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"orrery/internal/site/distro"
)

// TestKernelsOfArchives: the packages that are unpacked for real kernels. Testdata has the output
// of apt-cache(8) for all packages concerned, in Debian 13 and Ubuntu 24.04, from November 2026.
// The base has everything else that they need.
func TestKernelsOfArchives(t *testing.T) {
	for suite, c := range map[string]struct {
		kernel string
		want   string
	}{
		"trixie": {"linux-image-cloud-amd64",
			"kmod libkmod2 linux-image-6.12.107+deb13-cloud-amd64 linux-image-cloud-amd64"},
		"trixie full": {"linux-image-amd64", "kmod libkmod2 linux-image-6.12.107+deb13-amd64 linux-image-amd64"},
		"noble": {"linux-image-virtual",
			"kmod libkmod2 linux-image-6.8.0-151-generic linux-image-virtual linux-modules-6.8.0-151-generic"},
		"noble full": {"linux-image-generic",
			"kmod libkmod2 linux-image-6.8.0-151-generic linux-image-generic linux-modules-6.8.0-151-generic linux-modules-extra-6.8.0-151-generic"},
	} {
		t.Run(suite, func(t *testing.T) {
			file, _, _ := strings.Cut(suite, " ")
			text, err := os.ReadFile("testdata/kernels/" + file)
			if err != nil {
				t.Fatal(err)
			}
			said, have := archives{}, map[string]bool{}
			for paragraph := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
				for p := range distro.Paragraphs(paragraph + "\n\n") {
					said[p["package"]] = paragraph + "\n\n"
					for _, group := range slices.Concat(distro.Relations(p["pre-depends"]), distro.Relations(p["depends"])) {
						have[group[0]] = !strings.HasPrefix(group[0], "linux-") && !strings.HasPrefix(group[0], "initramfs") &&
							!strings.Contains(group[0], "kmod")
					}
				}
			}
			i := &installer{Packages: distro.Debian.Packages, in: said, log: io.Discard, program: []string{"apt-get", "-qq"}}
			needed, err := i.needed(t.Context(), have, []string{"kmod", c.kernel})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range needed {
				names = append(names, p["package"])
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%s is unpacked, not %s", got, c.want)
			}
		})
	}
}
