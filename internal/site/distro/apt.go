package distro

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/text/pattern"
	"orrery/internal/tree"
)

// Option returns a line of apt configuration that sets key to value.
func Option(key, value string) string { return fmt.Sprintf("%s %q;", key, value) }

// apt uses apt(8) with dpkg(1), and mmdebstrap(1) to create bases.
var apt = &Packages{
	Name: "apt", Tool: "usr/bin/apt-get", Needs: "dpkg and apt",
	Maker: "mmdebstrap", GetMaker: "apt-get install mmdebstrap",
	Unreached: "check that `apt-get update` works on this host; [mirror] in site.toml sets other archives",
	Make:      mmdebstrap,
	SourcesCommand: func(dir string) []string {
		return []string{"sh", "-c", `dpkg --print-architecture --print-foreign-architectures
		f=` + dir + `/sources.list; [ -e $f ] || f=/etc/apt/sources.list; cat $f /etc/apt/sources.list.d/* 2>/dev/null; true`}
	},
	Program: func(dir, key string) []string {
		lists := dir + "/lists/" + key
		return []string{
			"apt-get", "-qq", "-o", "Dir::State::Lists=" + lists, "-o", "Dir::Cache::Archives=" + dir + "/archives",
			// Parsed lists are shared between builds as well. The cache that apt merges from them,
			// and the container's own state, are not worth writing.
			"-o", "Dir::Cache::srcpkgcache=" + lists + "/srcpkgcache.bin", "-o", "Dir::Cache::pkgcache=",
		}
	},
	Update:  []string{"-o", "APT::Update::Error-Mode=any", "update"},
	Fetch:   []string{"-y", "--download-only", "install"},
	Install: []string{"-y", "--no-download", "-o", "Debug::NoLocking=1", "install"},
	InPlace: func(names []string) [][]string {
		// A running system may hold the lock, for example during an automatic upgrade.
		wait := []string{"apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"}
		return [][]string{
			slices.Concat(wait, []string{"update"}),
			slices.Concat(wait, []string{"-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confdef", "-o",
				"Dpkg::Options::=--force-confold", "install", "--"}, names),
		}
	},
	Offered: func(program, names []string) []string {
		// The command fails if one of many names is unknown. The caller checks the output instead.
		shell := []string{"/bin/sh", "-c", `apt-cache "$@" || true`, "apt-cache"}
		return slices.Concat(shell, program[2:], []string{"show", "--all-versions"}, names)
	},
	Download: func(program []string, directory string, names []string) []string {
		shell := []string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, directory}
		return slices.Concat(shell, program, []string{"download"}, names)
	},
	Candidate: func(program, names []string) []string {
		shell := []string{"/bin/sh", "-c", `apt-cache "$@" || true`, "apt-cache"}
		return slices.Concat(shell, program[2:], []string{"show", "--no-all-versions"}, names)
	},
	Has: []string{"cat", "/var/lib/dpkg/status"},
	// systemd calls the mount program, and it cannot unmount what it did not mount.
	Machine:  []string{"kmod", "mount"},
	OfKernel: partOfKernel().MatchString,
	File: func(p map[string]string) string {
		// apt's naming scheme
		return strings.ReplaceAll(p["package"]+"_"+p["version"]+"_"+p["architecture"]+".deb", ":", "%3a")
	},
	Unpack: func(files []string) []string {
		return slices.Concat([]string{"bash", "-euo", "pipefail", "-c", unpackScript, "bash"}, files)
	},
	Unpacked: unpacked,
	In: func(s *Scratch) (files map[string]string, environ []string) {
		files = map[string]string{}
		settings := slices.Clone(s.Access)
		if s.Alone {
			settings = append(settings, Option("Dir::Etc::sourceparts", "/dev/null"))
		}
		if s.Sources != "" {
			files["sources.list"] = s.Sources
			settings = append(settings, Option("Dir::Etc::sourcelist", s.BuildDir+"/sources.list"))
		}
		files["apt.conf"] = aptConfig + strings.Join(settings, "\n") + "\n"
		return files, []string{"DEBIAN_FRONTEND=noninteractive", "DEBCONF_NONINTERACTIVE_SEEN=true",
			"APT_CONFIG=" + s.BuildDir + "/apt.conf"}
	},
	Outdated: []string{"404", "Unable to fetch", "Failed to fetch", "Hash Sum mismatch", "Unable to locate",
		"has no installation candidate", "not found"},
	Unknown:   []string{"Unable to locate", "no installation candidate"},
	Installed: installed,
	Sources:   "/etc/apt/sources.list",
	More:      "etc/apt/sources.list.d",
	Keys:      "/etc/apt/keyrings/",
	Trusted:   "/etc/apt/trusted.gpg.d/*.[ga][ps][gc]",
	Guard:     File{Path: "/usr/sbin/policy-rc.d", Text: "#!/bin/sh\nexit 101\n"}, // invoke-rc.d(8)
	Fittings: []File{
		{Path: "/etc/apt/apt.conf.d/90orrery",
			Text: "APT::Install-Recommends \"0\";\nAPT::Install-Suggests \"0\";\nAcquire::Languages \"none\";\n"},
		{Path: "/etc/dpkg/dpkg.cfg.d/90orrery", Text: strings.Join(dpkgExcludes, "\n") + "\n"},
	},
	Volatile: []string{"var/lib/apt/lists", "var/cache/apt"},
	// Logs, and dpkg's backups of its files.
	Leavings:   []string{"var/log/apt/*", "var/lib/dpkg/*-old", "var/cache/debconf/*-old"},
	FromMaking: []string{"etc/apt/apt.conf.d/99mmdebstrap", "etc/dpkg/dpkg.cfg.d/99mmdebstrap"},
}

// partOfKernel matches the packages of a kernel, as opposed to their dependencies such as
// initramfs-tools and linux-base.
var partOfKernel = pattern.New("^linux-(image|binary|modules)-")

// notInstalled is the directory that lists packages that were unpacked but not installed. It has
// one file per package, in the form of dpkg's status file. Image scanners know this directory.
const notInstalled = "var/lib/dpkg/status.d"

// unpackScript extracts packages. It uses tar, which follows symbolic links to directories such as /lib.
// Command dpkg-deb --extract would replace these links.
const unpackScript = `mkdir -p /` + notInstalled + `
for f; do
	name=$(dpkg-deb -f "$f" Package)
	dpkg-deb -f "$f" > /` + notInstalled + `/$name
	dpkg-deb --fsys-tarfile "$f" | tar -xp -C / --keep-directory-symlink --exclude='./boot/System.map*' --exclude='./usr/share/doc/*/*.gz' \
		--exclude='./usr/share/man' --exclude='./usr/share/lintian' --exclude='./usr/share/bug'
done
for modules in /lib/modules/*/; do depmod "$(basename "$modules")"; done`

// unpacked returns the packages of a system that were unpacked but not installed.
func unpacked(system *tree.Root) ([]string, error) {
	names, err := system.Names(notInstalled, 1<<12)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range names {
		text, err := system.ReadFile(path.Join(notInstalled, name), maxSettingsBytes)
		if err != nil {
			return nil, err
		}
		for p := range Paragraphs(string(text)) {
			all = append(all, p["package"]+"="+p["version"])
		}
	}
	slices.Sort(all)
	return all, nil
}

// Relations parses a package's dependency field or its Provides field. Of each group, one package
// is sufficient, and the first is preferred. Relations ignores versions, because all packages of
// one archive fit together.
func Relations(field string) [][]string {
	var all [][]string
	for group := range strings.SplitSeq(field, ",") {
		var names []string
		for one := range strings.SplitSeq(group, "|") {
			if words := strings.Fields(one); len(words) > 0 {
				name, _, _ := strings.Cut(words[0], ":") // libc6:any
				name, _, _ = strings.Cut(name, "(")
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			all = append(all, names)
		}
	}
	return all
}

// aptConfig is apt's configuration in every scratch container.
const aptConfig = `APT::Sandbox::User "root";
APT::Install-Recommends "0";
APT::Keep-Downloaded-Packages "1";
Acquire::Languages "none";
DPkg::Use-Pty "0";
DPkg::Options { "--force-confdef"; "--force-confold"; "--force-unsafe-io"; };
`

// dpkgExcludes are files that nobody reads on a node. They are more than a tenth of a small system.
// Licences are kept.
var dpkgExcludes = []string{
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
	"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/lintian/*",
	"path-exclude=/usr/share/locale/*", "path-include=/usr/share/locale/locale.alias",
}

// mmdebstrap returns the command that creates a base, and the files that the command reads. The
// command runs as root of a user namespace.
func mmdebstrap(b *Bootstrap) (files map[string]string, args []string) {
	args = []string{
		"mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase",
		"--include=" + strings.Join(b.Packages, ","),
		// fetched by root, so that the modes of parent directories do not matter
		`--aptopt=Acquire::Languages "none"`, `--aptopt=APT::Sandbox::User "root"`,
	}
	for _, o := range b.Access {
		args = append(args, "--aptopt="+o)
	}
	for _, e := range dpkgExcludes {
		args = append(args, "--dpkgopt="+e)
	}
	args = append(args,
		"--skip=download/empty", "--skip=essential/unlink", "--skip=cleanup/apt",
		fmt.Sprintf(`--setup-hook=/bin/sh -eu '%[1]s/gather' "$1" '%[1]s/archives' %[2]s`, b.BuildDir,
			strings.Join(b.Packages, " ")),
		b.Suite, b.Tree, b.BuildDir+"/sources.list")
	return map[string]string{"gather": gatherScript, "sources.list": b.Sources}, args
}

// gatherScript provides the packages of a base before any of their programs runs. It takes them from the
// directory that all builds share and downloads the rest from the archives.
//
// Other builds may have written anything to the shared directory, and apt accepts a file with the
// right size without further checks. Therefore gather verifies the files against the signed lists.
// It unmounts the directory before programs of the packages run. mmdebstrap downloads later what
// gatherScript could not provide.
const gatherScript = `tree=$1 shared=$2
shift 2
export APT_CONFIG="${MMDEBSTRAP_APT_CONFIG:-$APT_CONFIG}"
mkdir -p "$tree/var/cache/apt/archives/partial" "$tree/var/cache/apt/shared"
cd "$tree/var/cache/apt/shared"
apt-get -qq --error-on=any update
set -- "$@" '?essential' '?priority(required)'
if apt-get -qq --print-uris -o Acquire::ForceHash=SHA256 install "$@" >../uris; then
	sed -n "s/^'[^']*' \([^ /]*\) [0-9]* SHA256:\([0-9a-f]*\)$/\2  \1/p" ../uris >../wanted
	while read -r digest file; do
		if [ -f "$shared/$file" ]; then echo "$shared/$file"; fi
	done <../wanted | xargs -r cp --reflink=auto -t . || true
	{ sha256sum --check --ignore-missing ../wanted 2>/dev/null || true; } | sed -n 's/: OK$//p' | xargs -r mv -t ../archives
	for file in *; do
		if [ -e "$file" ]; then
			echo "$file is skipped: it does not match the archive"
			rm -f "$shared/$file"
		fi
	done
	apt-get -qq --yes --download-only install "$@"
	while read -r digest file; do
		if [ ! -e "$shared/$file" ]; then
			cp --remove-destination "../archives/$file" "$shared/.$file" && mv -T "$shared/.$file" "$shared/$file" || true
		fi
	done <../wanted
fi
umount "$shared"
`

// maxStatusBytes limits the size of dpkg's status file. Four thousand packages take 5 MiB.
const maxStatusBytes = 128 << 20

// installed reads the installed packages from dpkg's status file. It runs no program of the system.
func installed(system *tree.Root) ([]string, error) {
	text, err := system.ReadFile("var/lib/dpkg/status", maxStatusBytes)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for p := range Paragraphs(string(text)) {
		if p["package"] != "" && strings.HasSuffix(p["status"], " installed") {
			all = append(all, p["package"]+"="+p["version"])
		}
	}
	slices.Sort(all)
	return all, nil
}
