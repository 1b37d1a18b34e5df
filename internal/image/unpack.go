package image

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// FillKernel fills the layer of a kernel in a scratch container on its base image. The layer has
// the kernel, its modules and what else a virtual machine needs. The packages are unpacked, not
// installed. So their scripts, which would create an initramfs and set up a boot loader, do not
// run. The base image's list of packages also stays unchanged. Role layers, which are built without
// a kernel, may have another list.
func (c Cache) FillKernel(ctx context.Context, in host.Runner, l *spec.Layer, log io.Writer) error {
	d := distro.ForImage(l.Image)
	i, err := c.installer(ctx, in, d, log)
	if err != nil {
		return err
	}
	err = i.withLists(ctx, func() error { return i.unpack(ctx, d, l.Kernel) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	return noKernel(d, l, err)
}

func noKernel(d *distro.Distribution, l *spec.Layer, err error) error {
	var none *unknownPackage
	if errors.As(err, &none) {
		return problem.New(problem.Unable,
			"image %s has no kernel that a virtual machine could boot: its archives have no package %s", l.Image.Name,
			none.name).
			Try(`name archives that have it in [mirror] or in the image; containers (engine = "lxc") need no kernel`)
	}
	var p *problem.Problem
	if errors.As(err, &p) {
		return err
	}
	return problem.New(problem.Failed, "the kernel of image %s (%s) could not be unpacked", l.Image.Name, l.Kernel).
		Because(err).Try("%s", d.Packages.Unreached)
}

// unpack downloads and unpacks the kernel and what it needs.
func (i *installer) unpack(ctx context.Context, d *distro.Distribution, kernel string) error {
	have, err := i.provided(ctx)
	if err != nil {
		return err
	}
	lacks := slices.DeleteFunc(slices.Clone(d.Packages.Machine), func(name string) bool { return have[name] })
	needed, err := i.needed(ctx, have, append(lacks, kernel))
	if err != nil {
		return err
	}
	var exact, files []string
	for _, p := range needed {
		exact = append(exact, p["package"]+"="+p["version"])
		files = append(files, path.Join(access.BuildDir, "archives", d.Packages.File(p)))
	}
	download := d.Packages.Download(i.program, path.Join(access.BuildDir, "archives"), exact)
	if err := i.withPackageLock(ctx, func() error { return i.do(ctx, download) }); err != nil {
		return err
	}
	return i.do(ctx, d.Packages.Unpack(files))
}

func (i *installer) do(ctx context.Context, args []string) error {
	err := i.in.Run(ctx, host.Command{Args: args, Stdout: i.log, Stderr: i.log})
	var run *host.RunError
	if errors.As(err, &run) {
		shorten(run, i.Packages.Tool)
	}
	return err
}

// provided returns the packages that the scratch has, and the names that they provide.
func (i *installer) provided(ctx context.Context) (map[string]bool, error) {
	text, err := host.Output(ctx, i.in, host.Command{Args: i.Packages.Has}, maxListBytes)
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for p := range distro.Paragraphs(string(text)) {
		if strings.HasSuffix(p["status"], " installed") {
			have[p["package"]] = true
			for _, group := range distro.Relations(p["provides"]) {
				have[group[0]] = true
			}
		}
	}
	return have, nil
}

// maxListBytes limits the output of package managers.
const maxListBytes = 64 << 20

type unknownPackage struct{ name string }

func (u *unknownPackage) Error() string { return "Unable to locate package " + u.name }

// needed returns what the archives say about packages and all their dependencies that the scratch
// does not have. A kernel depends on programs for booting a computer, which a node does not need.
// So of a kernel's dependencies, only those that are part of the kernel are included.
func (i *installer) needed(ctx context.Context, have map[string]bool, names []string) ([]map[string]string, error) {
	var all []map[string]string
	asked := map[string]bool{}
	for len(names) > 0 {
		text, err := host.Output(ctx, i.in, host.Command{Args: i.Packages.Candidate(i.program, names)}, maxListBytes)
		if err != nil {
			return nil, err
		}
		found := map[string]map[string]string{}
		for p := range distro.Paragraphs(string(text)) {
			if found[p["package"]] == nil {
				found[p["package"]] = p
			}
		}
		var more []string
		for _, name := range names {
			asked[name] = true
			p := found[name]
			if p == nil {
				return nil, &unknownPackage{name}
			}
			all = append(all, p)
			for _, group := range slices.Concat(distro.Relations(p["pre-depends"]), distro.Relations(p["depends"])) {
				known := func(name string) bool { return have[name] || asked[name] || slices.Contains(more, name) }
				if !slices.ContainsFunc(group, known) && (!i.Packages.OfKernel(name) || i.Packages.OfKernel(group[0])) {
					more = append(more, group[0])
				}
			}
		}
		names = more
	}
	return all, nil
}
