/**
 * Compresses files for hosts that serve what lies beside a file: `node compress.mjs JOBS.json`, a list of
 * `{source, target, encoding: "br" | "gz", quality}`. Node has both encoders; its thread pool runs several at once.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const AT_ONCE = 4;

const jobs = JSON.parse(await readFile(process.argv[2], 'utf8'));

async function work() {
  for (let job = jobs.shift(); job; job = jobs.shift()) {
    const data = await readFile(job.source);
    const params = { [constants.BROTLI_PARAM_QUALITY]: job.quality, [constants.BROTLI_PARAM_SIZE_HINT]: data.length };
    const packed = job.encoding === 'br' ? await promisify(brotliCompress)(data, { params }) : await promisify(gzip)(data, { level: job.quality });
    await writeFile(job.target, packed);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, work));
