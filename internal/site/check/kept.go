package check

import (
	"fmt"
	"path"
	"strings"
	"time"

	"orrery/internal/pattern"
	"orrery/internal/problem"
	"orrery/internal/site"
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
			// A misspelt name would keep the data elsewhere without a word.
			found.wrong(key, problem.NearestOr(v.Name, known, "take it out, or declare it in a role"), "no role has a volume %q", v.Name)
		}
		checkMirrored(found, v)
		from, address := site.SourceOf(v.Remote, v.Path)
		switch {
		case v.Path != "" && address != "":
			found.wrong(at("volume", v.Name, from.Key), "take one of them out", "volume %s has both path and %s", v.Name, from.Key)
		case address != "" && !from.Valid(address):
			found.wrong(at("volume", v.Name, from.Key), fmt.Sprintf("such as %q", from.Example), "%s = %q is no %s", from.Key, address, from.What)
		case v.Path != "":
			if !path.IsAbs(v.Path) || path.Clean(v.Path) == "/" {
				found.wrong(at("volume", v.Name, "path"), `such as "/srv/pgdata"`, "path = %q is not an absolute path of a directory", v.Path)
			}
		}
	}
}

// rsyncTarget is what a volume can be mirrored to: a directory, of another machine by SSH or of this one.
var rsyncTarget = pattern.New(`^(?:(?:[A-Za-z_][A-Za-z0-9_.-]*@)?(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):)?(/[A-Za-z0-9._/+@%=,~-]*)$`)

const minEvery = time.Minute // as often as cron can

func checkMirrored(found *findings, v site.Volume) {
	target := rsyncTarget().FindStringSubmatch(v.Mirror)
	switch {
	case v.Mirror == "":
	case target == nil || path.Clean(target[1]) == "/" || strings.Contains(target[1]+"/", "/../"):
		found.wrong(at("volume", v.Name, "mirror"), `such as "backup@ct:/srv/archive" or "/mnt/archive"`, "mirror = %q is not an absolute path of a directory, here or on another machine", v.Mirror)
	case v.Path != "" && target[1] == v.Mirror && overlap(v.Path, v.Mirror):
		found.wrong(at("volume", v.Name, "mirror"), "choose a directory elsewhere", "mirror = %q is not apart from the volume itself, %s", v.Mirror, v.Path)
	}
	switch {
	case v.Every == 0:
	case v.Mirror == "":
		found.wrong(at("volume", v.Name, "every"), "say where: mirror = \"backup@ct:/srv/archive\"", "every has no mirror that is to be made")
	case v.Every < minEvery:
		found.wrong(at("volume", v.Name, "every"), `at least "1m"`, "every = %s is too often", v.Every)
	}
}

// overlap reports whether one of two directories is the other or in it.
func overlap(a, b string) bool {
	a, b = path.Clean(a)+"/", path.Clean(b)+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// Bounds of a secret that is generated.
const (
	minSecret = 8
	maxSecret = 4096
)

func checkSecrets(ix *index, found *findings) {
	for _, x := range ix.Secrets {
		key := at("secret", x.Name)
		if !word().MatchString(x.Name) {
			found.wrong(key, `letters, digits, "_", "." and "-"`, "secret name %q is no legal name of a file", x.Name)
		}
		sources := 0
		for _, given := range []bool{x.File != "", len(x.Command) > 0, x.Generate != 0} {
			if given {
				sources++
			}
		}
		if sources != 1 {
			found.wrong(key, "give one of them", "secret %s has %d of file, command and generate", x.Name, sources)
		}
		if x.Generate != 0 && (x.Generate < minSecret || x.Generate > maxSecret) {
			found.wrong(at("secret", x.Name, "generate"), fmt.Sprintf("%d to %d; 32 is good", minSecret, maxSecret), "generate = %d is out of range", x.Generate)
		}
		if len(x.Command) > 0 && x.Command[0] == "" {
			found.wrong(at("secret", x.Name, "command"), `such as ["pass", "show", "karoo/db"]`, "the command has no name")
		}
	}
}

func checkRoleSecrets(ix *index, found *findings) {
	known := names(ix.Secrets, func(x *site.Secret) string { return x.Name })
	declared := set(known)
	for r := range each(ix.Roles) {
		seen := map[string]bool{}
		for k, use := range r.Secrets {
			key := at("role", r.Name, "secret", k, "name")
			switch {
			case use.Name == "":
				found.wrong(key, `write name = "…"`, "the secret has no name")
			case seen[use.Name]:
				found.wrong(key, "take one of them out", "secret %q is named twice", use.Name)
			case ix.used[r.Name] && !declared[use.Name]:
				cure := fmt.Sprintf("declare it in site.toml: secret.%s.generate = 32", use.Name)
				found.wrong(key, problem.NearestOr(use.Name, known, cure), "secret %q is not declared in the site file", use.Name)
			}
			seen[use.Name] = true
			checkOwner(found, at("role", r.Name, "secret", k, "owner"), use.Owner)
		}
	}
}
