package check

import (
	"fmt"
	"path"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

func checkVolumes(ix *index, found *findings) {
	used := map[string]bool{}
	var known []string
	for r := range each(ix.Roles) {
		for _, v := range r.Volumes {
			if !used[v.Name] {
				used[v.Name], known = true, append(known, v.Name)
			}
		}
	}
	for _, v := range ix.Volumes {
		key := at("volume", v.Name)
		if !used[v.Name] {
			// A misspelt name would silently store the data in the default place.
			found.report(key, problem.SuggestOr(v.Name, known, "remove it, or declare it in a role"),
				"no role declares a volume %q", v.Name)
		}
		checkMirrored(found, v)
		from, address := site.SourceOf(v.Remote, v.Path)
		switch {
		case v.Path != "" && address != "":
			found.report(at("volume", v.Name, from.Key), "remove one of them",
				"volume %s has both path and %s", v.Name, from.Key)
		case address != "" && !from.Valid(address):
			found.report(at("volume", v.Name, from.Key), fmt.Sprintf("such as %q", from.Example),
				"%s = %q is not a valid %s", from.Key,
				address, from.What)
		case v.Path != "":
			if !path.IsAbs(v.Path) || path.Clean(v.Path) == "/" {
				found.report(at("volume", v.Name, "path"), `such as "/srv/pgdata"`,
					"path = %q is not an absolute path of a directory", v.Path)
			}
		}
	}
}

// rsyncTarget matches the target of a volume's mirror: a directory on this machine, or on another
// one over SSH.
var rsyncTarget = pattern.New(
	`^(?:(?:[A-Za-z_][A-Za-z0-9_.-]*@)?(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):)?(/[A-Za-z0-9._/+@%=,~-]*)$`)

const minEvery = time.Minute // cron's shortest interval

func checkMirrored(found *findings, v site.Volume) {
	target := rsyncTarget().FindStringSubmatch(v.Mirror)
	switch {
	case v.Mirror == "":
	case target == nil || path.Clean(target[1]) == "/" || strings.Contains(target[1]+"/", "/../"):
		found.report(at("volume", v.Name, "mirror"), `such as "backup@ct:/srv/archive" or "/mnt/archive"`,
			"mirror = %q is not an absolute path of a directory, on this or another machine", v.Mirror)
	case v.Path != "" && target[1] == v.Mirror && overlap(v.Path, v.Mirror):
		found.report(at("volume", v.Name, "mirror"), "choose a directory outside the volume",
			"mirror = %q overlaps the volume, %s", v.Mirror, v.Path)
	}
	switch {
	case v.Every == 0:
	case v.Mirror == "":
		found.report(at("volume", v.Name, "every"), "add mirror = \"backup@ct:/srv/archive\"",
			"every has no effect without a mirror")
	case v.Every < minEvery:
		found.report(at("volume", v.Name, "every"), `at least "1m"`, "every = %s is too often", v.Every)
	}
}

// overlap reports whether two directories are the same or one contains the other.
func overlap(a, b string) bool {
	a, b = path.Clean(a)+"/", path.Clean(b)+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

func checkRoleVolumes(found *findings, r *site.Role) {
	for k, v := range r.Volumes {
		if !fileNamePattern().MatchString(v.Name) {
			found.report(at("role", r.Name, "volume", k, "name"), `letters, digits, "_", "." and "-"`,
				"volume name %q is not a valid directory name", v.Name)
		}
		checkTarget(found, at("role", r.Name, "volume", k, "path"), "volume", v.Path)
		checkOwner(found, at("role", r.Name, "volume", k, "owner"), v.Owner)
		checkInitial(found, at("role", r.Name, "volume", k, "from"), &v)
		switch {
		case v.Quarantine == "":
		case v.Quarantine != site.CopyEmpty && v.Quarantine != site.CopySnapshot:
			found.report(at("role", r.Name, "volume", k, "quarantine"),
				`write "snapshot" to start with a copy, or "empty"`,
				"quarantine = %q is unknown", v.Quarantine)
		case !v.Exclusive:
			found.report(at("role", r.Name, "volume", k, "quarantine"), "remove it, or write exclusive = true",
				"quarantine = %q has no effect without exclusive: nodes in quarantine share the volume", v.Quarantine)
		}
	}
}

// The owner and mode of a volume if the role declares none.
const (
	defaultOwner = "root:root"
	defaultMode  = 0o755
)

// checkInitial checks what a volume begins with.
func checkInitial(found *findings, key []string, v *site.VolumeUse) {
	switch {
	case v.From == "":
	case v.From != site.FromLayer:
		found.report(key, `write from = "layer", or leave it out for an empty volume`, "from = %q is unknown", v.From)
	case v.Owner != defaultOwner || v.Mode != defaultMode:
		found.report(key, "remove owner and mode", "volume %s has the owner and mode of the directory in the layer", v.Name)
	}
}
