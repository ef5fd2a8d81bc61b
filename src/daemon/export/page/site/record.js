// The last ten minutes of each tenant on each GPU: the daemon's history, then one sample a second.

const KEEP_S = 600;
const EVERY_S = 1;
const MIB_PER_GIB = 1024;
const fields = ["got", "limit", "used", "quota"];

export class Record {
  constructor() {
    this.clear();
  }

  clear() {
    this.times = []; // seconds since 1970
    this.rows = new Map(); // "tenant id/GPU index" -> a list for each field, with a value for each of `times`
  }

  row(key) {
    let row = this.rows.get(key);
    if (!row) {
      row = Object.fromEntries(fields.map((field) => [field, new Array(this.times.length).fill(null)]));
      this.rows.set(key, row);
    }
    return row;
  }

  // Replaces all samples by the daemon's history.
  load(history, now = Date.now() / 1000) {
    const spread = (changes) => {
      const values = new Array(history.ages_s.length).fill(null);
      changes.forEach(([from, value], i) => values.fill(value, from, changes[i + 1]?.[0] ?? values.length));
      return values;
    };
    this.clear();
    this.times = history.ages_s.map((age) => now - age);
    for (const tenant of history.tenants)
      this.rows.set(`${tenant.id}/${tenant.index}`, {
        got: tenant.got_1s_pct,
        limit: spread(tenant.cores_limit_now_pct),
        used: tenant.memory_used_mib.map((mib) => mib === null ? null : mib / MIB_PER_GIB),
        quota: spread(tenant.memory_quota_mib).map((mib) => mib === null ? null : mib / MIB_PER_GIB),
      });
  }

  // Returns true if it took a sample, and false if the last sample is less than EVERY_S old.
  add(state, now = Date.now() / 1000) {
    if (now - (this.times.at(-1) ?? 0) < EVERY_S - 0.05) return false;
    this.times.push(now);
    for (const tenant of state.tenants)
      for (const device of tenant.devices) {
        const row = this.row(`${tenant.id}/${device.index}`);
        const length = this.times.length;
        const values = [device.got_1s_pct, device.cores_limit_now_pct, device.memory_used_bytes / 2 ** 30,
          device.memory_quota_bytes / 2 ** 30];
        fields.forEach((field, i) => (row[field][length - 1] = values[i]));
      }
    let old = 0;
    while (this.times[old] < now - KEEP_S) old++;
    this.times.splice(0, old);
    for (const [key, row] of this.rows) {
      for (const field of fields) {
        row[field].length = old + this.times.length;
        for (let i = row[field].length - 1; i >= 0 && row[field][i] === undefined; i--) row[field][i] = null;
        row[field].splice(0, old);
      }
      if (row.got.every((value) => value === null)) this.rows.delete(key);
    }
    return true;
  }
}
