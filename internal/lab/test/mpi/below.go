package mpi

import (
	"context"
	"path"
	"strings"

	"orrery/internal/lab/place"
	"orrery/internal/problem"
)

// inLayer returns a place in which the programs of Open MPI find their files. Their paths are
// compiled in as /usr/…, but on the bare host the layer is below Root, and /usr/… has other files
// or none. The files of a session go into dir, and settings in a user's home are ignored.
func inLayer(ctx context.Context, p *place.Place, dir string) (*place.Place, error) {
	words := []string{"env", "TMPDIR=" + dir, "HOME=" + dir}
	if p.Root != "" && p.Root != "/" {
		lib, err := libraries(ctx, p)
		if err != nil {
			return nil, err
		}
		words = append(words, directories(p.Root, lib)...)
	}
	result := *p
	result.Programs = func(name string) []string {
		return append(append([]string(nil), words...), p.Command(name)...)
	}
	return &result, nil
}

// directories returns the environment that tells Open MPI, PMIx and hwloc where their files are
// (opal/mca/installdirs and src/mca/pinstalldirs of their sources; HWLOC_PLUGINS_PATH in hwloc's
// manual, "Environment Variables"). The prefix alone is not enough for PMIx as built by Debian. The
// libraries that plugins need are found through --library-path of the dynamic linker, which is
// among the words of Command.
func directories(root, lib string) []string {
	pmix := path.Join(lib, "pmix2")
	return []string{
		"OPAL_PREFIX=" + path.Join(root, "usr"),
		"OPAL_LIBDIR=" + path.Join(lib, "openmpi/lib"),
		"OPAL_PKGLIBDIR=" + path.Join(lib, "openmpi/lib/openmpi3"),
		"OPAL_SYSCONFDIR=" + path.Join(root, "etc/openmpi"),
		"PMIX_PREFIX=" + pmix,
		"PMIX_LIBDIR=" + path.Join(pmix, "lib"),
		"PMIX_PKGLIBDIR=" + path.Join(pmix, "lib/pmix"),
		"PMIX_PKGDATADIR=" + path.Join(pmix, "share/pmix"),
		"PMIX_SYSCONFDIR=" + path.Join(pmix, "share"),
		"HWLOC_PLUGINS_PATH=" + path.Join(lib, "hwloc"),
	}
}

// libraries returns the library directory of the layer's architecture, such as
// ROOT/usr/lib/x86_64-linux-gnu.
func libraries(ctx context.Context, p *place.Place) (string, error) {
	const script = `for d in "$1"/usr/lib/*/openmpi; do [ ! -d "$d" ] || echo "$d"; done`
	out, err := place.Output(ctx, p, "/bin/sh", "-c", script, "sh", p.Root)
	if err != nil {
		return "", err
	}
	found := strings.Fields(string(out))
	if len(found) != 1 {
		return "", problem.New(problem.Unable, "Open MPI is missing below %s", p.Root).At(p.Name).
			Try("the image needs the package openmpi-bin")
	}
	return path.Dir(found[0]), nil
}
