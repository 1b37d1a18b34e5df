# Makes the data directory on the volume, unless a former node has left one there. Safe to run again.
data=/var/lib/mysql

# The number behind the name "mysql" is chosen by apt, so another layer may have another.
if [ -n "$(find $data -maxdepth 1 ! -user mysql)" ]; then
    chown -R mysql:mysql $data
fi
if [ ! -e $data/orrery-made ]; then
    find $data -mindepth 1 -delete # which a killed run may have left
    mariadb-install-db --user=mysql --datadir=$data --skip-test-db --auth-root-authentication-method=socket >/dev/null
    touch $data/orrery-made
fi
