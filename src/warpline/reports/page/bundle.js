"use strict";(()=>{var Ut="http://www.w3.org/2000/svg";function qe(o,e,t){for(let[n,r]of Object.entries(e))typeof r=="function"?o.addEventListener(n.replace(/^on/,""),r):r===!0?o.
setAttribute(n,""):r!==void 0&&r!==!1&&o.setAttribute(n,String(r));o.append(...t)}function u(o,e={},...t){let n=document.createElement(o);return qe(n,e,t),n}function E(o,e={},...t){
let n=document.createElementNS(Ut,o);return qe(n,e,t),n}function Z(o,e,t){let n=u("div",{});o.append(n);let r=0,s=()=>{let i=Math.min(e,n.clientWidth||e);i!==r&&
(r=i,n.replaceChildren(t(i)))};new ResizeObserver(s).observe(n),s()}function de(o,e,t){let n=r=>{o.forEach((s,i)=>{s.setAttribute("tabindex",i===r?"0":"-1"),s.classList.
toggle("selected",i===r)}),e(r)};o.forEach((r,s)=>{r.setAttribute("tabindex",s===0?"0":"-1"),r.setAttribute("role","button"),r.addEventListener("focus",()=>n(s)),
r.addEventListener("click",()=>{n(s),t(s)}),r.addEventListener("keydown",i=>{let{key:a}=i,l=a==="ArrowRight"||a==="ArrowDown"?1:a==="ArrowLeft"||a==="ArrowUp"?-1:
0;if(l)o[(s+l+o.length)%o.length]?.focus();else if(a==="Enter"||a===" ")n(s),t(s);else return;i.preventDefault()})})}function Q(o){let e=document.getElementById(
o);if(!e)throw new Error(`the page has no #${o}`);return e}var Nt=[[1e9,"s"],[1e6,"ms"],[1e3,"µs"]],Gt=[[1e12,"TB"],[1e9,"GB"],[1e6,"MB"],[1e3,"kB"]],Dt=.9995,Ye=new Intl.NumberFormat("en",{maximumFractionDigits:0});function Ve(o){
let e=Math.abs(o);return e>=99.95?Ye.format(o):e>=9.995?o.toFixed(1):o.toFixed(2)}function Xe(o,e,t){for(let[n,r]of e)if(Math.abs(o)>=n*Dt)return`${Ve(o/n)} ${r}`;
return`${o.toFixed(0)} ${t}`}var M=o=>Xe(o,Nt,"ns"),O=o=>Xe(o,Gt,"B"),H=(o,e)=>e?`${(100*o/e).toFixed(1)} %`:"–",B=o=>`${Ve(o)}×`,R=o=>Ye.format(o),N=(o,e,t=`${e}\
s`)=>`${R(o)} ${R(o)==="1"?e:t}`;function Ft(o,{launches:e,cpu_ns:t,gpu_ns:n,fewer:r}){let s=e*t,i=e*n,a=e===o.launches&&t===o.cpu_ns&&n===o.gpu_ns,l=Math.max(s,i),c=a&&o.step_ns!==null?o.step_ns:
l;return{dispatch_ns:s,work_ns:i,step_ns:c,graph_ns:a&&o.graph_ns!==null?o.graph_ns:o.graph_launch_ns+i+e*o.graph_gap_ns,fused_ns:Math.max(s/r,i)+Math.max(0,c-l),
bound:Bt(s,i,a?o.loading_ns:0,c),crossover:t?i/t:null}}function Bt(o,e,t,n){let r=o+t;return 1.1*Math.max(e,r)<n?"neither dispatch nor the GPU alone":e>=r?"the \
GPU":t>o?"loading data":"dispatch on the CPU"}function je(o,e){let t=u("div",{role:"status","aria-live":"polite"}),n={launches:o.launches,cpu_ns:o.cpu_ns,gpu_ns:o.
gpu_ns,fewer:4},r=(c,d,h,m)=>{let p=g=>String(Math.round(g/h*100)/100),y=n[d],k=u("input",{type:"number",min:m,step:"any",value:p(y)});return k.addEventListener(
"input",()=>{let g=Number(k.value);k.setAttribute("aria-invalid",String(!(Number.isFinite(g)&&g>=m))),!(!Number.isFinite(g)||g<m)&&(n[d]=k.value===p(y)?y:g*h,l())}),
[u("label",{},`${c} `,k),k]},s=[r("Launches per step","launches",1,1),r("CPU time per launch, µs","cpu_ns",1e3,0),r("GPU time per launch, µs","gpu_ns",1e3,0),
r("Fusion: times fewer launches","fewer",1,1)],i=s.map(([,c])=>c.value),a=u("button",{type:"button",onclick:()=>s.forEach(([,c],d)=>{c.value=i[d]??"",c.dispatchEvent(
new Event("input"))})},"This trace");function l(){let c=Ft(o,n),d=(m,p)=>[u("dt",{},m),u("dd",{},p)],h=m=>`${M(m)} (${B(c.step_ns/Math.max(m,1))})`;t.replaceChildren(
u("p",{class:"strong"},`Bound by ${c.bound}: a step takes ${M(c.step_ns)}.`),u("dl",{},...d("to dispatch",M(c.dispatch_ns)),...d("to run",M(c.work_ns)),...o.loading_ns?
d("loading data",`${M(o.loading_ns)} in which the same threads launch nothing`):[],...c.crossover===null?[]:d("crossover",`the GPU is the limit below ${N(c.crossover,
"launch","launches")} for the same GPU time`),...d("captured as one graph",h(c.graph_ns)),...d(`with ${n.fewer} times fewer launches`,h(c.fused_ns))))}e.append(
u("div",{class:"budget"},u("div",{class:"fields"},...s.map(([c])=>c),u("p",{},a)),t)),l()}var oe=18,zt=3,Kt=.6;function Wt(o,e,t){if(t(o)<=e)return o;let n=0,r=o.length;for(;r-n>1;){let s=n+r>>1;t(`${o.slice(0,s)}…`)<=e?n=s:r=s}return n+1<zt?"":`${o.
slice(0,n)}…`}function qt(o,e){let t=new Map;o.parent.forEach((c,d)=>t.set(c,[...t.get(c)??[],d]));let n=c=>o.total_ns[c]??0;for(let c of t.values())c.sort((d,h)=>n(
h)-n(d));let r=[],s=[];for(let c=e;c>=0;c=o.parent[c]??-1)s.unshift(c);s.forEach((c,d)=>r.push({node:c,depth:d,left:0,width:1}));let i=e>=0?[e]:t.get(-1)??[],a=i.
reduce((c,d)=>c+n(d),0)||1,l=(c,d,h)=>{for(let m of c){let p=n(m)/a;m!==e&&r.push({node:m,depth:d,left:h,width:p}),l(t.get(m)??[],d+1,h),h+=p}};return l(i,Math.
max(s.length-1,0),0),r}function Je(o,e){let t=u("select",{"aria-label":"Flame graph"},...o.flames.map((g,w)=>u("option",{value:w},`${g.name}, ${M(Pe(g))}`))),n=u(
"input",{type:"search",placeholder:"Highlight","aria-label":"Highlight frames"}),r=u("button",{type:"button"},"Whole graph"),s=u("p",{class:"quiet",role:"status"}),
i=E("svg",{class:"flame",role:"group","aria-label":"Flame graph. Arrow keys move, Enter zooms, Escape zooms out."});e.append(u("p",{class:"tools"},t," ",n," ",r),
i,s,u("p",{class:"quiet"},"Width is time, a caller above what it calls. Each moment of a thread belongs to its innermost frame, op or call, so nothing is counte\
d twice; GPU time is the sum of durations, below the stack that launched it. Frames under 0.02 % are left out."));let a=-1,l=-1,c=u("canvas").getContext("2d"),d=g=>c?.
measureText(g).width??1/0;function h(){let g=o.flames[Number(t.value)];if(!g)return;let w=Math.max(i.clientWidth||e.clientWidth||1e3,300),{fontSize:$,fontFamily:v}=getComputedStyle(
i);c&&(c.font=`${$} ${v}`);let f=n.value.toLowerCase(),T=qt(g,a).filter(_=>_.width*w>=Kt);new Set(T.map(_=>_.node)).has(l)||(l=T[0]?.node??-1);let A=Math.max(0,
...T.map(_=>_.depth));i.setAttribute("viewBox",`0 0 ${w} ${(A+1)*oe}`);let P=i.contains(document.activeElement);i.replaceChildren(...T.map(_=>m(g,_,w,f))),P&&y(),
r.disabled=a<0,s.textContent=a<0?`${g.name}: ${M(Pe(g))}`:ue(g,a)}function m(g,w,$,v){let f=g.frames[g.frame[w.node]??0]??"",T=w.left*$,x=w.width*$,A=Wt(Vt(f),x-
6,d),P=v!==""&&f.toLowerCase().includes(v),_=()=>{a=w.node,l=w.node,h()},C=E("g",{class:`frame ${Xt(f)}${P?" match":v?" faded":""}`,"data-node":w.node,tabindex:w.
node===l?0:-1,role:"button","aria-label":ue(g,w.node),onclick:_,onfocus:()=>{l=w.node,s.textContent=ue(g,w.node)}},E("title",{},ue(g,w.node)),E("rect",{x:T,y:w.
depth*oe,width:Math.max(x-.5,.3),height:oe-1}),...A?[E("text",{x:T+3,y:w.depth*oe+oe/2},A)]:[]);return C.addEventListener("keydown",I=>{p(g,w,I,_)}),C}function p(g,w,$,v){
let f=Yt(g,w.node,$.key);if($.key==="Enter"||$.key===" ")v();else if($.key==="Escape")a=-1,h();else if(f!==null)f>=0&&i.querySelector(`[data-node="${f}"]`)&&(l=
f,h());else return;$.preventDefault()}function y(){i.querySelector(`[data-node="${l}"]`)?.focus()}let k=()=>{a=-1,h()};t.addEventListener("change",k),r.addEventListener(
"click",k),n.addEventListener("input",h),new ResizeObserver(h).observe(e),h()}var Pe=o=>o.parent.reduce((e,t,n)=>e+(t<0?o.total_ns[n]??0:0),0);function ue(o,e){
let t=o.total_ns[e]??0;return`${o.frames[o.frame[e]??0]??""}: ${M(t)}, ${H(t,Pe(o))}`}function Yt(o,e,t){let n=a=>o.total_ns[a]??0,r=o.parent[e]??-1,s=a=>o.parent.
flatMap((l,c)=>l===a?[c]:[]).sort((l,c)=>n(c)-n(l));if(t==="ArrowUp")return r;if(t==="ArrowDown")return s(e)[0]??-1;if(t!=="ArrowLeft"&&t!=="ArrowRight")return null;
let i=s(r);return i[i.indexOf(e)+(t==="ArrowRight"?1:-1)]??-1}var Vt=o=>o.replace(/^.*\/(?=[^/]*\(\d+\): )/,"").replace(/^void /,"");function Xt(o){return/\(\d+\): |^<built-in|^nn\.Module/.
test(o)?"python":/^(cuda|cu|hip)[A-Z]/.test(o)?"api":/^(aten|autograd|torch|c10d|nccl|prims|inductor)::|Backward\d*$/.test(o)?"op":/[<(]|kernel|gemm|^Mem(cpy|set)/i.
test(o)?"kernel":"range"}var jt=1e3,he=220,q=76,me=12,Jt=12,Ze=26,Zt=3;function Qt(o,e){let t=0,n=o.length;for(;t<n;){let r=t+n>>1;(o[r]??0)<=e?t=r+1:n=r}return Math.max(t-1,0)}function Qe(o,e,t){
for(let n of o.curves){let r=Math.max(1,...n.allocated_bytes),s=Math.max(0,...n.reserved_bytes),i=s?`, ${O(s)} reserved${s>et(r,s)?" (far above the picture)":" \
(dashed)"}`:"",a=u("p",{class:"quiet",role:"status"});e.append(u("h3",{},n.title,u("small",{},`peak ${O(r)} allocated${i}`))),Z(e,jt,l=>en(n,l,a,t)),e.append(a)}}
var et=(o,e)=>e<=Zt*o?Math.max(o,e):o;function en(o,e,t,n){let r=o.times_ns[0]??0,s=Math.max(o.times_ns.at(-1)??0,r+1),i=Math.max(1,...o.allocated_bytes),a=Math.
max(0,...o.reserved_bytes),l=o.allocated_bytes.indexOf(i),c=et(i,a),d=f=>q+(f-r)/(s-r)*(e-q-me),h=f=>he-Ze-f/c*(he-Jt-Ze),m=f=>f.map((T,x)=>`${x?`H${d(o.times_ns[x]??
0).toFixed(1)}V`:`M${d(r)} `}${h(T).toFixed(1)}`).join("")+`H${e-me}`,p=f=>{let T=o.reserved_bytes[f];t.textContent=`${M(o.times_ns[f]??0)}: ${O(o.allocated_bytes[f]??
0)} allocated${T===void 0?"":`, ${O(T)} reserved`}`},y=f=>{let T=v.getBoundingClientRect(),x=(f.clientX-T.left)/T.width*e;return Qt(o.times_ns,r+(x-q)/(e-q-me)*
(s-r))},k=f=>{let T=o.times_ns[f]??0,x=(s-r)/50;n.goTo(T-x,T+x)},g=l,w=E("circle",{r:4,class:"mark",cx:0,cy:0}),$=f=>{g=f,w.setAttribute("cx",String(d(o.times_ns[f]??
0))),w.setAttribute("cy",String(h(o.allocated_bytes[f]??0))),p(f)},v=E("svg",{viewBox:`0 0 ${e} ${he}`,class:"chart memory",role:"slider",tabindex:0,"aria-label":`\
Memory of ${o.title}, peak ${O(o.allocated_bytes[l]??0)}`,"aria-valuemin":0,"aria-valuemax":o.times_ns.length-1,"aria-valuenow":l,onmousemove:f=>$(y(f)),onclick:f=>k(
y(f)),onkeydown:f=>{let{key:T}=f,x=T==="ArrowRight"?1:T==="ArrowLeft"?-1:0;x?(f.preventDefault(),$(Math.min(Math.max(g+x,0),o.times_ns.length-1)),v.setAttribute(
"aria-valuenow",String(g)),v.setAttribute("aria-valuetext",t.textContent??"")):T==="Enter"&&k(g)}});for(let f of[0,.5,1])v.append(E("path",{class:"grid",d:`M${q}\
 ${h(f*c)}H${e-me}`}),E("text",{x:q-8,y:h(f*c),class:"end dim"},O(f*c)));for(let f of e<600?[0,.5,1]:[0,.25,.5,.75,1])v.append(E("text",{x:d(r+f*(s-r)),y:he-8,class:f===
1?"end dim":"middle dim"},M(r+f*(s-r))));return c>=a&&a&&v.append(E("path",{class:"reserved",d:m(o.reserved_bytes)})),v.append(E("path",{class:"area",d:`${m(o.allocated_bytes)}\
V${h(0)}H${q}z`}),E("path",{class:"allocated",d:m(o.allocated_bytes)}),w),$(l),v}function tt(o,e){e.append(u("dl",{class:"numbers"},...o.entries.flatMap(t=>[u("dt",{},t.number),u("dd",{},...t.value?[u("b",{},t.value)," "]:[],t.how)])))}var tn=15,nn=(o,e)=>{if(o===null||o==="")return"–";if(typeof o=="string")return o;switch(e){case"ns":return M(o);case"bytes":return O(o);case"bytes_per_second":
return`${O(o)}/s`;case"share":return H(o,1);case"gain":return B(o);case"count":return R(o);default:return String(Math.round(o*100)/100)}};function rn(o,e){let t=e.
falling?-1:1;return[...o].sort((n,r)=>{let s=n[e.column]??null,i=r[e.column]??null;return s===null||i===null?+(s===null)-+(i===null):typeof s=="number"&&typeof i==
"number"?t*(s-i):t*String(s).localeCompare(String(i),"en")})}function sn(o,e){let t=e.toLowerCase().split(/\s+/).filter(Boolean);return o.filter(n=>{let r=n.filter(
s=>typeof s=="string").join(" ").toLowerCase();return t.every(s=>r.includes(s))})}function on(o,e,t){let n=e.flatMap((l,c)=>l.sums?[c]:[]),r=new Map;for(let l of o){
let c=String(l[t]??"–"),d=r.get(c)??[0,...n.map(()=>0)];d[0]=(d[0]??0)+1,n.forEach((h,m)=>{d[m+1]=(d[m+1]??0)+Number(l[h]??0)}),r.set(c,d)}let s=[t,...n].flatMap(
l=>e[l]??[]),[i,...a]=s;return{columns:[...i?[i]:[],{title:"rows",unit:"count",group:!1,sums:!0},...a],rows:[...r].map(([l,c])=>[l,...c])}}var rt=[],st=o=>rt.some(
e=>e(o));function ot(o,e,t){for(let n of o.tables)e.append(an(n,t))}function an(o,e){let t=null,n=null,r=!1,s=`table-${o.title.toLowerCase().replace(/\W+/g,"-")}`,
i=u("input",{type:"search",placeholder:"Filter","aria-label":`Filter ${o.title.toLowerCase()}`,oninput:()=>g()}),a=o.columns.flatMap((v,f)=>v.group?[u("option",
{value:f},v.title)]:[]),l=u("select",{"aria-label":`Group ${o.title.toLowerCase()} by`,onchange:()=>{n=l.value===""?null:Number(l.value),t=null,g()}},u("option",
{value:""},"not grouped"),...a),c=u("span",{class:"quiet",role:"status"}),d=u("thead"),h=u("tbody"),m=u("button",{type:"button",onclick:()=>{r=!0,g()}},"Show al\
l"),p=u("caption",{class:"sr"},o.title),y=u("div",{class:"table-view",id:s},u("h3",{},o.title),u("p",{class:"tools"},i," ",...a.length?[u("label",{},"group by ",
l)," "]:[],c),u("div",{class:"wide"},u("table",{},p,d,h)),m),k=(v,f)=>{t={column:v,falling:t?.column===v?!t.falling:!f},g(v)};function g(v){let f=sn(o.rows,i.value),
T=n===null?{columns:[...o.columns],rows:f}:on(f,o.columns,n),x=rn(T.rows,t??nt(T.columns)),A=r||n!==null?x:x.slice(0,tn),P=t??nt(T.columns);d.replaceChildren(u(
"tr",{},...T.columns.map((C,I)=>w(C,I,P)))),h.replaceChildren(...A.map(C=>u("tr",{},...T.columns.map((I,W)=>$(C,I,W))))),v!==void 0&&d.querySelectorAll("button")[v]?.
focus();let _=o.left_out?`; ${N(o.left_out,"shorter one")} not on this page`:"";c.textContent=`${N(A.length,n===null?"row":"group")} of ${R(n===null?o.rows.length:
x.length)}${_}`,m.hidden=A.length===x.length,m.textContent=`Show all ${R(x.length)}`}function w(v,f,T){let x=v.unit==="text",A=T.column===f,P=u("button",{type:"\
button",class:"sort",onclick:()=>k(f,x)},v.title,u("span",{"aria-hidden":"true"},A?T.falling?" ▾":" ▴":""));return u("th",{scope:"col",class:x?"":"number","\
aria-sort":A?T.falling?"descending":"ascending":"none"},P)}function $(v,f,T){let x=nn(v[T]??null,f.unit);if(T>0)return u("td",{class:f.unit==="text"?"":"number"},
x);let A=n===null?()=>e.search(x):()=>{i.value=x,n=null,l.value="",g()};return u("th",{scope:"row",class:"name"},u("button",{type:"button",class:"link",title:n===
null?`${x}
Show it on the timeline`:"Show its rows",onclick:A},x))}return rt.push(v=>o.rows.some(f=>f[0]===v)?(i.value=v,n=null,l.value="",g(),y.scrollIntoView({block:"nea\
rest"}),!0):!1),g(),y}function nt(o){let e=o.findIndex(t=>t.unit==="ns");return{column:Math.max(e,0),falling:e>=0}}var lt=1e3,ln=300,ie=66,pe=22,it=20,fe=46;function cn(o){let e=[...o.dots.map(s=>s.intensity),...o.compute.map(s=>s.value/o.memory.value)].map(Math.log10),t=[...o.
dots.map(s=>s.flops_per_second),...o.compute.map(s=>s.value)].map(Math.log10),n=s=>Math.floor(Math.min(...s)),r=s=>Math.ceil(Math.max(...s)+.05);return{x:[n(e),
r(e)],y:[n(t),r(t)]}}function ct(o){let[e,t]=o>=1e12?[1e12,"T"]:o>=1e9?[1e9,"G"]:[1e6,"M"];return`${(o/e).toPrecision(3)} ${t}FLOP/s`}function dt(o,e,t){let n=u(
"p",{class:"quiet",role:"status"},`${o.device}. The drawn ops take ${H(o.drawn_ns,o.total_ns)} of the GPU time; the larger the dot, the longer. Click one, or us\
e the arrow keys.`);Z(e,lt,r=>dn(o,r,n,t)),e.append(mn(),n)}function dn(o,e,t,n){let r=Math.max(ln,e*.52),{x:[s,i],y:[a,l]}=cn(o),c=x=>ie+(Math.log10(x)-s)/(i-s)*
(e-ie-pe),d=x=>r-fe-(Math.log10(x)-a)/(l-a)*(r-it-fe),h=E("svg",{viewBox:`0 0 ${e} ${r}`,class:"chart roofline",role:"group","aria-label":`Roofline of ${o.device}\
, ${o.dots.length} ops. Arrow keys move between them.`});for(let x=s;x<=i;x++){let A=c(10**x);h.append(E("path",{class:"grid",d:`M${A} ${it}V${r-fe}`}),E("text",
{x:A,y:r-fe+16,class:"middle dim"},at(x)))}for(let x=a;x<=l;x++){let A=d(10**x);h.append(E("path",{class:"grid",d:`M${ie} ${A}H${e-pe}`}),E("text",{x:ie-8,y:A,class:"\
end dim"},at(x-12)))}h.append(E("text",{x:(ie+e)/2,y:r-8,class:"middle dim"},"arithmetic intensity (FLOP per byte)"),E("text",{x:16,y:r/2,class:"middle dim",transform:`\
rotate(-90 16 ${r/2})`},"TFLOP/s"));let m=o.memory.value,p=Math.max(...o.compute.map(x=>x.value),10**a),y=Math.max(10**s,10**a/m),k=[c(y),d(y*m)],g=[c(p/m),d(p)],
w=Math.atan2(g[1]-k[1],g[0]-k[0])*180/Math.PI,[$,v]=[.72*k[0]+.28*g[0],.72*k[1]+.28*g[1]],f=[E("text",{x:$,y:v-11,class:"middle roof-name",transform:`rotate(${w}\
 ${$} ${v})`},`memory ${O(m)}/s, ${o.memory.source}`)];h.append(E("path",{class:"roof",d:`M${k.join(" ")}L${g.join(" ")}`}));let T=-1/0;for(let x of o.compute){
let A=d(x.value);h.append(E("path",{class:"roof",d:`M${c(x.value/m)} ${A}H${e-pe}`})),A-T>=14&&(f.push(E("text",{x:e-pe-4,y:A-11,class:"end roof-name"},`${x.name}\
 ${ct(x.value)}, ${x.source}`)),T=A)}return h.append(...hn(o,Math.min(1,e/lt+.2),c,d,t,n),...f),h}var at=o=>o>=-4&&o<=4?String(10**o):`1e${o}`;function un(o,e){
let t=o.roof_pct===null?"":`, ${o.roof_pct.toFixed(1)} % of its roof`;return`${o.name} ${o.shapes}: ${M(o.time_ns)} in ${R(o.calls)} calls (${H(o.time_ns,e)} of\
 GPU time), ${ct(o.flops_per_second)}${t}${o.bound?`, ${o.bound}-bound`:""}`}function hn(o,e,t,n,r,s){let i=Math.max(...o.dots.map(c=>c.time_ns)),a=o.dots.map(c=>un(
c,o.total_ns)),l=o.dots.map((c,d)=>E("circle",{cx:t(c.intensity),cy:n(c.flops_per_second),r:e*(3.5+13*Math.sqrt(c.time_ns/i)),class:`dot ${c.bound||"unknown-bou\
nd"}`,"aria-label":a[d]},E("title",{},a[d]??"")));return de(l,c=>{r.textContent=a[c]??""},c=>{let{name:d}=o.dots[c];st(d)||s.search(d)}),l}function mn(){let o=e=>u(
"li",{},E("svg",{class:"swatch",viewBox:"0 0 10 10","aria-hidden":"true"},E("circle",{cx:5,cy:5,r:5,class:`dot ${e}`})),`${e}-bound`);return u("ul",{class:"lege\
nd"},...["compute","memory","latency"].map(o))}var pn=1e3,ee=120,ge=66,be=8,fn=22,gn=48,bn=34;function ut(o,e,t){let n=u("p",{class:"quiet",role:"status"},"Height: length of the step; blue: GPU busy. Click a\
 step to see it on the timeline, or use the arrow keys.");Z(e,pn,r=>yn(o,r,n,t)),e.append(n)}function yn(o,e,t,n){let r=o.lengths_ns.length,s=Math.max(1,...o.lengths_ns),
i=be+ee+fn,a=Math.min(gn,(e-ge)/r),l=Math.max(.5,a*.82),c=Math.ceil(bn/a),d=E("svg",{viewBox:`0 0 ${e} ${i}`,class:"chart steps",role:"group","aria-label":`${r}\
 steps, the longest ${M(s)}. Arrow keys move between them.`});for(let p of[0,.5,1]){let y=be+ee*(1-p);d.append(E("path",{class:"grid",d:`M${ge} ${y}H${e}`}),E("\
text",{x:ge-8,y,class:"end dim"},p?M(p*s):"0"))}let h=o.lengths_ns.map((p,y)=>`step ${y}: ${M(p)}, GPU busy ${H(o.busy_ns[y]??0,p)}`),m=o.lengths_ns.map((p,y)=>{
let k=ge+y*a+(a-l)/2,g=p/s*ee,w=(o.busy_ns[y]??0)/s*ee;return y%c===0&&d.append(E("text",{x:k+l/2,y:i-9,class:"middle dim"},String(y))),E("g",{class:"step-bar",
"aria-label":h[y]},E("title",{},h[y]??""),E("rect",{x:k,width:l,y:be+ee-g,height:g,class:"part idle"}),E("rect",{x:k,width:l,y:be+ee-w,height:w,class:"part comp\
ute"}))});return de(m,p=>{t.textContent=h[p]??""},p=>{let y=o.starts_ns[p]??0;n.goTo(y,y+(o.lengths_ns[p]??0))}),d.append(...m),d}var ht=700,G=46,vn=76,Y=20,Oe=10;function wn(o,e){return o.replayed.find(t=>t.fixes.length===e.size&&t.fixes.every(n=>e.has(n)))}function xn(o,e){let t=[...e].sort(
(n,r)=>n-r).map(n=>`--fix ${o.fixes[n]?.name??""}`);return["warpline whatif",kn(o.file),...t].join(" ")}var kn=o=>/^[\w./:@%+=-]+$/.test(o)?o:`'${o.replaceAll("\
'",`'"'"'`)}'`;function mt(o,e){let t=new Set,n=[],r=u("div",{class:"whatif-answer",role:"status","aria-live":"polite"}),s=()=>{n.forEach((c,d)=>{c.checked=t.has(
d)}),r.replaceChildren(...Mn(o,t,Math.min(ht,r.clientWidth||ht)))},i=c=>{t.clear();for(let d of c)t.add(d);s()},a=u("fieldset",{class:"fixes"},u("legend",{},"Fi\
xes"));o.fixes.forEach((c,d)=>{let h=u("input",{type:"checkbox",onchange:()=>{t.delete(d)||t.add(d),s()}});n.push(h);let m=o.planned.indexOf(d),p=[c.effort,c.confidence?
`${c.confidence} confidence`:"no finding alone",m>=0?`plan ${m+1}`:""].filter(Boolean);a.append(u("label",{title:c.claim},h,u("b",{},c.words),u("span",{class:"q\
uiet"},` ${p.join(", ")}`)))});let l=u("p",{class:"buttons"},u("button",{type:"button",onclick:()=>i([])},"None")," ",...o.planned.length?[u("button",{type:"but\
ton",onclick:()=>i(o.planned)},"The plan")]:[]);e.append(u("div",{class:"whatif"},u("div",{},a,l),r)),i(o.planned.slice(0,1))}function Mn(o,e,t){if(!e.size)return[
He(`${M(o.step_ns)} without a profiler. Tick a fix.`),Ie(o,t)];let n=wn(o,e);if(!n)return[He("This combination was not replayed for this page."),u("p",{class:"q\
uiet"},"Fixes overlap, so their gains do not multiply. This command replays it:"),u("pre",{},xn(o,e)),Ie(o,t)];let{low:r,expected:s,high:i}=n.step_ns,{gain:a}=n,
l=n.is_wide?`${M(r)} to ${M(i)}: measure it`:`${M(s)}, ${B(a.expected)}`;return[He(`${M(o.step_ns)} → ${l}`),u("p",{class:"quiet"},`The 80 % range is ${M(r)} \
to ${M(i)}, of the gain ${B(a.low)} to ${B(a.high)}. `+(a.low<1?"It may gain nothing.":"Replayed on this trace's graph, without a profiler.")),Ie(o,t,n)]}var He=o=>u(
"p",{class:"strong"},o);function Ie(o,e,t){let n=Math.max(o.step_ns,t?.step_ns.high??0),r=(e-G-vn)/n,s=E("svg",{viewBox:`0 0 ${e} ${2*Y+2*Oe}`,class:"chart","ar\
ia-hidden":"true"}),i=(a,l,c,d)=>{let h=a*(Y+Oe)+2;s.append(E("text",{x:G-10,y:h+Y/2,class:"end"},l),E("rect",{x:G,y:h,width:c*r,height:Y,class:d}))};if(i(0,"no\
w",o.step_ns,"before"),s.append(E("text",{x:G+o.step_ns*r+8,y:Y/2+2},M(o.step_ns))),t){let{low:a,expected:l,high:c}=t.step_ns,d=Y+Oe+2+Y/2;i(1,"after",l,"after"),
s.append(E("path",{class:"whisker",d:`M${G+a*r} ${d}H${G+c*r}M${G+a*r} ${d-6}v12M${G+c*r} ${d-6}v12`})),s.append(E("text",{x:G+c*r+8,y:d},t.is_wide?"measure it":
M(l)))}return s}var z=(o,e,t)=>({name:o,title:e,draw:t}),pt=[z("whatif","What if",mt),z("steps","Steps",ut),z("tables","Tables",ot),z("roofline","Roofline",dt),z("flame","Flame\
 graph",Je),z("budget","Dispatch budget",je),z("memory","Memory",Qe),z("numbers","How each number was made",tt)];var ft="warpline-theme",gt=()=>matchMedia("(prefers-color-scheme: dark)"),bt=[];function En(){try{let o=localStorage.getItem(ft);return o==="light"||o==="dark"?
o:null}catch{return null}}var ye=()=>(document.documentElement.dataset.theme??(gt().matches?"dark":"light"))==="dark";function yt(o){bt.push(o)}function vt(){let o=En();
o&&(document.documentElement.dataset.theme=o);let e=u("button",{type:"button",class:"theme"}),t=()=>{let s=ye()?"Light":"Dark";e.textContent=s,e.setAttribute("a\
ria-label",`${s} colours`)},n=()=>{t();for(let s of bt)s()};e.addEventListener("click",()=>{let s=ye()?"light":"dark";document.documentElement.dataset.theme=s;try{
localStorage.setItem(ft,s)}catch{}n()}),gt().addEventListener("change",n);let r;return addEventListener("beforeprint",()=>{r=document.documentElement.dataset.theme,
document.documentElement.dataset.theme="light",n()}),addEventListener("afterprint",()=>{r?document.documentElement.dataset.theme=r:delete document.documentElement.
dataset.theme,n()}),t(),e}function Tn(o){let e=atob(o),t=new Uint8Array(e.length);for(let n=0;n<t.length;n++)t[n]=e.charCodeAt(n);return t}async function Ue(o){let{readable:e,writable:t}=new DecompressionStream(
"deflate-raw"),n=t.getWriter(),r=e.getReader(),s=()=>{};n.write(o).catch(s),n.close().catch(s);let i=[],a=0;for(let c=await r.read();!c.done;c=await r.read())i.
push(c.value),a+=c.value.length;let l=new Uint8Array(a);for(let c=0,d=0;d<i.length;c+=i[d++].length)l.set(i[d],c);return l}async function ve(o){let e=Q(o),t=e.textContent??
"";return e.remove(),Ue(Tn(t))}function te(o,e=0){let t=e+4+new DataView(o.buffer).getUint32(e,!0);return{head:JSON.parse(new TextDecoder().decode(o.subarray(e+
4,t))),bytes:o,at:t}}async function wt(o){return JSON.parse(new TextDecoder().decode(await ve(o)))}function we(o,e,t,n,r){let s=o[e++]??0;for(let i=0,a=1;i<s;i++,
a*=256,e+=t)for(let l=0;l<t;l++)n[r+l]+=o[e+l]*a;return e}var Ne=o=>o%2?-(o+1)/2:o/2;var D=64,Ln=64,b=-1,ne=["gpu","syncs"],Ge=12,xe=class{head;particulars={launches:[],inputs:[],identities:[],spots:[],inside:[]};start;end;sum;name;argument;link;counts;groups=[];lanes=[];longestOf;constructor(e){
this.renew(e)}renew(e){let t=e.events,n=this.groups.map(a=>a.open);this.head=e,this.start=new Float64Array(t),this.end=new Float64Array(t),this.sum=new Float64Array(
t+1),this.name=e.names.length<65536?new Uint16Array(t):new Uint32Array(t),this.argument=new Uint32Array(t),this.link=new Int32Array(t).fill(b),this.counts=new Uint32Array(
e.names.length),this.longestOf=new Uint32Array(Math.ceil(t/D));let r=0,s=new Map;for(let{kind:a,device:l}of e.tracks)a==="gpu"&&s.set(l,(s.get(l)??0)+1);let i=({
kind:a,device:l})=>a==="python"||ne.includes(a)&&(s.get(l)??0)>Ge;this.groups=e.tracks.map((a,l)=>{let c=[],d={track:a,lanes:c,open:n[l]??!i(a)};return a.lanes.
forEach((h,m)=>c.push({group:d,depth:m,first:r,beyond:r+=h,ready:!1})),d}),this.lanes=this.groups.flatMap(a=>a.lanes)}readFirst(e,t){return this.readPictures(e,
t,0,this.head.early_parts)}readRest(e,t){let n=this.head.early_parts,r=this.head.tracks.reduce((s,i)=>Math.max(s,i.part+1),0);({head:this.particulars,at:t}=te(e,
t)),t=this.readRelations(e,t,0,n),t=this.readPictures(e,t,n,r),this.readRelations(e,t,n,r)}readPictures(e,t,n,r){for(let s=n;s<r;s++)t=this.readPicture(e,t,this.
lanes.filter(i=>i.group.track.part===s));return t}readRelations(e,t,n,r){let{argument:s,link:i}=this;for(let a=n;a<r;a++){let l=this.lanes.filter(m=>m.group.track.
part===a),c=l[0]?.first??0,d=(l[l.length-1]?.beyond??0)-c;t=we(e,t,d,s,c);let h=new Float64Array(d);t=we(e,t,d,h,0);for(let m=0,p=b;m<d;m++)i[c+m]=p+=Ne(h[m])}return t}readPicture(e,t,n){
let{start:r,end:s,sum:i,name:a,counts:l}=this,c=n[0]?.first??0,d=n[n.length-1]?.beyond??0,h=d-c;for(let p of[r,s,a])t=we(e,t,h,p,c);let m=i[c]??0;for(let p of n){
let y=0;for(let k=p.first;k<p.beyond;k++){let g=s[k];r[k]=y+=Ne(r[k]),s[k]=y+=g,i[k+1]=m+=g,l[a[k]]++}p.ready=!0}for(let p=Math.floor(c/D);p*D<d;p++){let y=Math.
max(p*D,c);for(let k=y+1,g=Math.min(d,(p+1)*D);k<g;k++)this.duration(k)>this.duration(y)&&(y=k);this.longestOf[p]=y}return t}duration(e){return this.end[e]-this.
start[e]}text(e){return this.head.names[this.name[e]].text}label(e){let t=this.head.names[this.name[e]];return t.short||t.text}after(e,t){let n=e.first,r=e.beyond;
for(;n<r;){let s=n+r>>>1;this.end[s]>t?r=s:n=s+1}return n}leap(e,t,n){let{start:r}=this,s=1,i=e;for(;i+s<t&&r[i+s]<n;)i+=s,s*=2;let a=Math.min(t,i+s);for(i++;i<
a;){let l=i+a>>>1;r[l]<n?i=l+1:a=l}return i}longest(e,t){let n=e,r=this.duration(e),s=c=>{let d=this.duration(c);d>r&&(r=d,n=c)},i=Math.ceil(e/D),a=Math.floor(t/
D);if(a<=i){for(let c=e+1;c<t;c++)s(c);return n}for(let c=e+1;c<i*D;c++)s(c);let l=Math.max(1,Math.floor((a-i)/Ln));for(let c=i;c<a;c+=l)s(this.longestOf[c]);for(let c=a*
D;c<t;c++)s(c);return n}find(e,t,n){for(let r of this.lanes)if(r.group.track.kind===e){for(let s=this.after(r,n);s<r.beyond&&this.start[s]<=n;s++)if(this.start[s]===
n&&this.name[s]===t)return s}return b}laneOf(e){let t=0,n=this.lanes.length-1;for(;t<n;){let r=t+n+1>>1;this.lanes[r].first<=e?t=r:n=r-1}for(;this.lanes[t].beyond<=
e;)t++;return this.lanes[t]}kind(e){return this.laneOf(e).group.track.kind}};var L=globalThis.innerWidth<700?112:200,K=22,re=17,U=17,xt=3,F=22,S=K+re,An=14,$n=.5,kt=["gpu","idle","syncs"],Sn=["api","ops","ranges","python"],_n={python:"Py\
thon"},ae=class{rows=[];pinned;height;rowOf=new Map;y=0;constructor(e,t){let{groups:n,head:r}=e,s=new Map;for(let a of n)s.set(a.track.thread,[...s.get(a.track.
thread)??[],a]);for(let a of Rn(n.map(l=>l.track.device)))this.addDevice(a,n.filter(l=>l.track.device===a));let i=this.y;for(let a of Cn(n)){this.add(F,{title:r.
threads[a]??"thread"});for(let l of Sn)for(let c of s.get(a)??[])c.track.kind===l&&this.addGroup(c,_n[l]??c.track.label)}this.height=this.y,this.pinned=i>t*$n?0:
i}of(e){return this.rowOf.get(e)}add(e,t){let n={y:this.y,height:e,...t};this.rows.push(n),n.lane&&this.rowOf.set(n.lane,n),this.y+=e}addDevice(e,t){let n=t.filter(
a=>ne.includes(a.track.kind)),r=n.filter(a=>a.track.kind==="gpu").length>Ge,s=r&&!n.some(a=>a.open);this.add(F,{title:`GPU ${e}`,...r?{toggles:n}:{}});for(let a of s?
kt.filter(l=>!ne.includes(l)):kt)for(let l of t)l.track.kind===a&&this.addGroup(l,l.track.label);if(!s)return;let i=N(n.filter(a=>a.track.kind==="gpu").length,"\
stream");for(let{lanes:a}of n)for(let l of a)this.add(xt,{lane:l,thin:!0,...i?{label:i,toggles:n}:{}}),i=void 0;this.y+=5}addGroup(e,t){let n=e.lanes,r=this.y;if(!n.
length)return;let s=n.length>1||e.track.kind==="python";for(let i of e.open?n:n.slice(0,An)){let a=i.depth===0;this.add(e.open?U:xt,{lane:i,...a?{label:t}:{},...a&&
s?{toggles:[e]}:{},...e.open?{}:{thin:!0}})}this.y=Math.max(this.y,r+U)+5}},Rn=o=>[...new Set(o.filter(e=>e!==null))].sort((e,t)=>e-t);function Cn(o){let e=new Map;
for(let{track:n}of o){if(n.thread===null)continue;let r=e.get(n.thread)??{};r[n.kind]=(r[n.kind]??0)+n.lanes.reduce((s,i)=>s+i,0),e.set(n.thread,r)}return[...e].
map(([n,{api:r=0,ops:s=0,ranges:i=0,python:a=0}])=>({thread:n,main:+(r>0&&i+a>0),api:r,ops:s})).sort((n,r)=>r.main-n.main||r.api-n.api||r.ops-n.ops||n.thread-r.
thread).map(({thread:n})=>n)}var Pn=4,Mt=240,On=60,Hn={w:[.2,-.2],s:[-.25,.25],a:[-.2,-.2],d:[.2,.2]};function Et(o){Un(o),Gn(o),Dn(o);let{find:e,next:t,previous:n,whole:r,help:s,keys:i}=o.
parts;e.addEventListener("input",()=>o.seek(e.value)),t.addEventListener("click",()=>o.next(1)),n.addEventListener("click",()=>o.next(-1)),r.addEventListener("c\
lick",()=>o.time.glide(0,o.time.length)),s.addEventListener("click",()=>i.showModal())}function In(o,e){let{events:t,picture:n,time:r,relations:s}=o,{tip:i,view:a}=o.
parts,l=n.eventAt(e.offsetX,e.offsetY);if(l!==o.hovered&&(o.hovered=l,o.drawOver()),a.style.cursor=e.offsetX<L?"default":e.offsetY<S?"col-resize":l!==b?"pointer":
"grab",i.hidden=l===b,l===b)return;let c=r.span/(n.width-L),d=t.leap(l,t.laneOf(l).beyond,t.start[l]+c)-l-1,h=s.opOf(l);i.replaceChildren(u("b",{},t.label(l)),u(
"span",{},M(t.duration(l)))),t.kind(l)==="gpu"&&h!==b&&i.append(u("span",{},t.text(h))),t.kind(l)==="idle"&&t.link[l]!==b&&i.append(u("span",{},`before ${t.label(
t.link[l])}`)),d>0&&t.duration(l)<c*2&&i.append(u("em",{},`${R(d+1)} events in this column`));let{offsetWidth:m,offsetHeight:p}=i,y=e.offsetY+18;i.style.transform=
`translate(${Math.min(e.offsetX+14,n.width-m-6)}px, ${y+p>n.height?e.offsetY-p-10:y}px)`}function Un(o){let{picture:e,time:t,parts:{view:n,tip:r}}=o,s=new Map,i=null;
n.addEventListener("pointerdown",l=>{n.setPointerCapture(l.pointerId),s.set(l.pointerId,l),t.stop();let c=l.offsetX>=L&&(l.shiftKey||l.offsetY<S);i={x:l.offsetX,
y:l.offsetY,start:t.start,end:t.end,scroll:e.scroll,selects:c,moved:!1}}),n.addEventListener("pointermove",l=>{let c=s.get(l.pointerId);if(!c||!i){In(o,l);return}
if(s.set(l.pointerId,l),s.size===2){let p=[...s.values()].find(g=>g.pointerId!==l.pointerId),y=Math.abs(c.offsetX-p.offsetX),k=Math.abs(l.offsetX-p.offsetX);y>8&&
k>8&&t.zoom(y/k,e.timeAt((l.offsetX+p.offsetX)/2)),e.scroll-=(l.offsetY-c.offsetY)/2,i.moved=!0;return}let d=l.offsetX-i.x,h=l.offsetY-i.y;if(!i.moved&&Math.hypot(
d,h)<Pn)return;if(i.moved=!0,r.hidden=!0,i.selects){o.selectRange([e.timeAt(Math.max(L,i.x)),e.timeAt(Math.max(L,l.offsetX))]);return}n.style.cursor="grabbing";
let m=-d/(e.width-L)*(i.end-i.start);e.scroll=i.scroll-h,t.move(i.start+m,i.end+m)});let a=l=>{s.delete(l.pointerId),i&&!i.moved&&l.type==="pointerup"&&Nn(o,l),
s.size||(i=null)};n.addEventListener("pointerup",a),n.addEventListener("pointercancel",a),n.addEventListener("pointerleave",()=>{r.hidden=!0,o.hovered=b,o.drawOver()}),
n.addEventListener("dblclick",l=>{let c=e.eventAt(l.offsetX,l.offsetY);c!==b&&o.fit(c)})}function Nn(o,e){let{picture:t}=o;if(e.offsetX>=L){o.selectRange(null),
o.choose(t.eventAt(e.offsetX,e.offsetY));return}let n=t.rowAt(e.offsetY,!0)?.toggles;n&&o.fold(n)}function Gn(o){let{picture:e,time:t,parts:{view:n,tip:r}}=o;n.
addEventListener("wheel",s=>{let i=s.shiftKey||Math.abs(s.deltaX)>Math.abs(s.deltaY);if(!s.ctrlKey&&!i&&document.activeElement!==n)return;s.preventDefault(),r.hidden=
!0,t.stop();let a=s.deltaMode===WheelEvent.DOM_DELTA_LINE?16:1,l=s.deltaX*a,c=s.deltaY*a;s.offsetX<L?(e.scroll+=c,o.redraw()):i?t.pan((l||c)/(e.width-L)*t.span):
t.zoom(Math.exp(Math.max(-Mt,Math.min(Mt,c))*(s.ctrlKey?.01:.0022)),e.timeAt(s.offsetX))},{passive:!1})}function Dn(o){let{find:e,view:t,keys:n,panel:r}=o.parts;
e.addEventListener("keydown",s=>{s.key==="Enter"&&(o.next(s.shiftKey?-1:1),s.preventDefault()),s.key==="Escape"&&(e.value="",o.seek(""),t.focus()),s.stopPropagation()}),
addEventListener("keydown",s=>{if(s.metaKey||s.ctrlKey||s.altKey||n.open)return;let i=s.target;i!==t&&i!==document.body&&!r.contains(i)||i.tagName==="BUTTON"&&(s.
key==="Enter"||s.key===" ")||i===document.body&&s.key.startsWith("Arrow")||Fn(o,s)&&s.preventDefault()})}function Fn(o,e){let{time:t,picture:n,chosen:r,events:s}=o,
i=e.key.length===1?e.key.toLowerCase():e.key,a=Hn[i];if(a)return t.glide(t.start+a[0]*t.span,t.end+a[1]*t.span),!0;switch(i){case"?":return o.parts.keys.showModal(),
!0;case"/":return o.parts.find.focus(),o.parts.find.select(),!0;case"n":return o.next(e.shiftKey?-1:1),!0;case"0":return t.glide(0,t.length),!0;case"f":return r!==
b&&o.fit(r),!0;case"l":return o.followLink(),!0;case"g":return o.nextGap(),!0;case"p":return o.toggle("python"),!0;case"t":return o.fold(n.layout.rows.flatMap(l=>l.
title!==void 0&&l.toggles||[])),!0;case"r":return o.selectRange([t.start,t.end]),!0;case"Enter":return r===b&&o.choose(Bn(o)),!0;case"Escape":return o.selectRange(
null),r!==b?o.choose(b):(o.parts.find.value="",o.seek("")),!0;case"ArrowLeft":case"ArrowRight":{let l=i==="ArrowRight"?1:-1;if(r===b)return t.glide(t.start+.15*
l*t.span,t.end+.15*l*t.span),!0;let c=s.laneOf(r),d=r+l;return d>=c.first&&d<c.beyond&&o.choose(d,!0),!0}case"ArrowUp":case"ArrowDown":{let l=i==="ArrowDown"?1:
-1;if(r===b)return n.scroll+=On*l,o.redraw(),!0;let c=o.relations.neighbour(r,l);return c!==b&&o.choose(c,!0),!0}default:return!1}}function Bn(o){let{events:e,time:t}=o,
n=(t.start+t.end)/2;for(let r of e.lanes.filter(s=>s.ready).sort((s,i)=>+(i.group.track.kind==="gpu")-+(s.group.track.kind==="gpu"))){let s=e.after(r,n);if(s<r.
beyond&&e.start[s]<t.end)return s}return b}var zn=200,Kn=1,Wn=.25,ke=class o{constructor(e){this.timeline=e}timeline;waiting=0;asked=0;moved(){clearTimeout(this.waiting),this.waiting=setTimeout(()=>{this.
fetch()},zn)}static areMissing(e,t,n,r){let s=n-t;return!e.least_ns||s/r>e.least_ns||s>Wn*e.length_ns?!1:!e.detailed||t<e.detailed[0]||n>e.detailed[1]}async fetch(){
let e=this.timeline();if(!e)return;let{time:t,events:n}=e,r=Math.max(0,t.start),s=Math.min(t.length,t.end),i=++this.asked;if(!o.areMissing(n.head,r,s,e.picture.
width))return;let a=Kn*(s-r),l=Math.floor(Math.max(0,r-a)),c=Math.ceil(Math.min(t.length,s+a)),d=await fetch(`rows?start=${l}&end=${c}`);if(!d.ok||i!==this.asked)
return;let{head:h,bytes:m,at:p}=te(await Ue(new Uint8Array(await d.arrayBuffer())));e.replace(h,m,p)}};var Tt=o=>{let e=/^(-?\d+)-(\d+)$/.exec(o??"");return e?[Number(e[1]),Number(e[2])]:void 0};function De(o){let e=new URLSearchParams(o.replace(/^#/,"")),t=Tt(e.
get("at")),n=Tt(e.get("range")),r=e.get("event");return{...t?{at:t}:{},...n?{range:n}:{},...r!==null&&/^\d+$/.test(r)?{event:Number(r)}:{}}}function Lt({at:o,event:e,
range:t}){let n=r=>r.map(s=>Math.max(0,Math.round(s))).join("-");return[o?`at=${n(o)}`:"",e!==void 0?`event=${e}`:"",t?`range=${n(t)}`:""].filter(Boolean).join(
"&")}var qn={matmul:[.56,.115,257],attention:[.5,.12,287],norm:[.66,.09,215],kernel:[.74,.06,240],copy:[.6,.1,308],memset:[.8,.02,250],comm:[.6,.15,350],graph:[.62,.08,
180],launch:[.8,.045,165],wait:[.66,.13,38],api_copy:[.74,.075,308],allocate:[.62,.09,20],api:[.83,.015,200],op:[.81,.05,255],range:[.88,.04,130],python:[.88,.022,
85],module:[.83,.055,90],sync:[.72,.1,45],idle:[.84,.01,250]},Yn={dispatch:"e69f00",sync:"d55e00",transfer:"56b4e9",input:"009e73",memory:"f0e442",comm:"cc79a7",
cold_start:"8c5a3c",launch_latency:"9aa0a6",dependency:"0072b2",profiler:"5f6368",unknown:"c9cdd2"},Vn=new Set(["op","range","python","module"]),Xn=new Set(["la\
unch","api","memset"]),jn=new Set(["matmul","attention"]),Jn=new Set(["op","range","python","module"]);function Zn([o,e,t]){let n=e*Math.cos(t*Math.PI/180),r=e*
Math.sin(t*Math.PI/180),s=(o+.3963377774*n+.2158037573*r)**3,i=(o-.1055613458*n-.0638541728*r)**3,a=(o-.0894841775*n-1.291485548*r)**3,l=c=>Math.round(255*Math.
min(1,Math.max(0,c<=.0031308?12.92*c:1.055*c**(1/2.4)-.055)));return[l(4.0767416621*s-3.3077115913*i+.2309699292*a),l(-1.2684380046*s+2.6097574011*i-.3413193965*
a),l(-.0041960863*s-.7034186147*i+1.707614701*a)]}var Me=o=>{let e=o.replace("#","");return[0,2,4].map(t=>parseInt(e.slice(t,t+2),16))},At=o=>`rgb(${o.join(" ")}\
)`,V=o=>(255<<24|o[2]<<16|o[1]<<8|o[0])>>>0,Fe=(o,e,t)=>o.map((n,r)=>Math.round(n*t+e[r]*(1-t))),le=o=>Me(Yn[o]??"c9cdd2");function se(o,e,t=.5){let[n,r,s]=qn[o],
i=n;return e&&(i=Vn.has(o)?1.22-i:Xn.has(o)?i-.3:jn.has(o)?i+.05:i-.04),Zn([i+(t-.5)*.055,r,s+(t*7%1-.5)*(Jn.has(o)?46:16)])}function Qn(o){let e=2166136261;for(let t=0;t<
o.length;t++)e=Math.imul(e^o.charCodeAt(t),16777619);return(e>>>8)%997/997}var er=o=>.299*o[0]+.587*o[1]+.114*o[2]>135;function $t(o,e,t){let n=new Uint32Array(
o.length),r=new Uint32Array(o.length),s=new Uint8Array(o.length);return o.forEach((i,a)=>{let l=i.cause!==null?le(i.cause):null,c=l??se(i.kind,e,Qn(i.short||i.text));
n[a]=V(c),r[a]=V(Fe(c,t,.24)),s[a]=er(l??se(i.kind,e))?1:0}),{full:n,faded:r,darkInk:s}}var X='Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", sans-serif';function St(){let o=getComputedStyle(document.documentElement),e=r=>o.getPropertyValue(
`--${r}`).trim(),t={paper:e("paper"),ink:e("ink"),dim:e("dim"),rule:e("rule"),grid:e("grid"),band:e("band"),accent:e("accent")},n=r=>V(Me(r));return{dark:ye(),paper:Me(
t.paper),css:t,pixels:{paper:n(t.paper),grid:n(t.grid),rule:n(t.rule)}}}var ce=class{constructor(e,t){this.events=e;this.width=t;this.line=new Uint32Array(t)}events;width;line;draw(e,t,n,r,s,i){let{events:a,line:l,width:c}=this,{start:d,
end:h,sum:m,name:p}=a,{beyond:y}=e,k=t+c/n,g=e.group.track.kind==="idle",w=a.after(e,t),$=!1;for(;w<y&&d[w]<k;){$=!0;let v=(d[w]-t)*n,f=(h[w]-t)*n;if(f-v>=1.5){
let C=Math.max(0,v),I=Math.min(c,f-v>4?f-1:f),W=r[p[w]],j=Math.ceil(C),J=Math.floor(I);J>j&&l.fill(W,j,J),j>C&&j<=c&&this.blend(j-1,W,j-C),I>J&&J<c&&this.blend(
J,W,I-J),i&&i(w,C,I),w++;continue}let T=Math.max(0,Math.floor(v)),x=t+(T+1)/n,A=a.leap(w,y,x);A-1>w&&(h[A-1]-d[A-1])*n>=1.5&&A--;let P=Math.max(0,h[A-1]-x)*n,_=(m[A]-
m[w])*n-P;if(T<c){let C=s!==null&&s.before[A]>s.before[w],I=A-w===1?w:C?tr(s,w,A):a.longest(w,A),W=_>=1||C?1:g?Math.max(.08,_):Math.max(.25,Math.sqrt(Math.max(0,
_)));this.blend(T,r[p[I]],W),P>.05&&T+1<c&&this.blend(T+1,r[p[A-1]],Math.min(1,P))}w=A}return $}blend(e,t,n){let r=this.line[e],s=1-n,i=(t>>>16&255)*n+(r>>>16&255)*
s,a=(t>>>8&255)*n+(r>>>8&255)*s,l=(t&255)*n+(r&255)*s;this.line[e]=(255<<24|i<<16|a<<8|l)>>>0}};function tr(o,e,t){let n=o.before[e],r=e,s=t-1;for(;r<s;){let i=r+
s>>>1;o.before[i+1]>n?s=i:r=i+1}return r}var nr=26,rr=110,Ee=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d",{alpha:!1}),this.layout=new ae(t,0),this.raster=
new ce(t,1),this.image=new ImageData(1,1),this.pixels=this.ground=new Uint32Array(1)}canvas;events;time;layout;scroll=0;covered=0;width=64;height=64;took={raster:0,
draw:0};context;size={width:0,height:0,ratio:1};ratio=1;raster;image;pixels;ground;textWidths=new Map;has({width:e,height:t,ratio:n}){return this.size.width===e&&
this.size.height===t&&this.size.ratio===n}resize(e){let{width:t,height:n,ratio:r}=this.size=e;this.width=Math.max(L+64,Math.floor(t)),this.height=Math.max(S+32,
Math.floor(n)),this.ratio=r,this.canvas.width=this.width*r,this.canvas.height=this.height*r;let s=Math.floor((this.width-L)*r),i=Math.floor((this.height-S)*r);this.
image=new ImageData(s,i),this.pixels=new Uint32Array(this.image.data.buffer),this.raster=new ce(this.events,s),this.ground=new Uint32Array(s),this.place()}place(){
this.layout=new ae(this.events,this.height-S)}x(e){return L+(e-this.time.start)/this.time.span*(this.width-L)}timeAt(e){return this.time.start+(e-L)/(this.width-
L)*this.time.span}screenY(e){return S+e.y-(e.y<this.layout.pinned?0:this.scroll)}box(e){let t=this.layout.of(this.events.laneOf(e));if(!t)return null;let n=this.
x(this.events.start[e]);return{x:n,right:Math.max(this.x(this.events.end[e]),n+2),y:this.screenY(t),height:t.height-(t.thin?0:1),row:t}}rowAt(e,t=!1){let{rows:n,
pinned:r}=this.layout,s=e<S+r;return n.find(i=>i.y<r===s&&e>=this.screenY(i)&&e<this.screenY(i)+Math.max(i.height,t&&i.toggles?U:0))}eventAt(e,t){let n=e<L||t<S?
void 0:this.rowAt(t),r=n?.lane;if(!r?.ready||t>=this.screenY(n)+n.height)return-1;let{events:s}=this,i=this.time.span/(this.width-L),a=this.timeAt(e),l=s.after(
r,a-i);if(l>=r.beyond||s.start[l]>a+i*1.5)return-1;let c=s.leap(l,r.beyond,a+i);return c-l<=1||s.start[l]<=a&&s.end[l]>a&&s.duration(l)>i*2?l:s.longest(l,c)}draw(e,t,n,r){
let s=performance.now(),{layout:i,context:a,ratio:l}=this;this.scroll=Math.max(0,Math.min(this.scroll,i.height-(this.height-this.covered-S)+8));let c=sr(this.time.
span,(this.width-L)/rr),d=[];this.background(e,c);let{pinned:h}=i;for(let m of i.rows)m.y>=h&&this.lane(m,h,n,r,d);for(let m of i.rows)m.y<h&&this.lane(m,0,n,r,
d);a.setTransform(l,0,0,l,0,0),a.putImageData(this.image,Math.round(L*l),Math.round(S*l)),this.took.raster=performance.now()-s,this.labels(d,e,t,r),this.ruler(e,
c),this.names(e),this.took.draw=performance.now()-s}background(e,t){let{ground:n,pixels:r,time:s}=this,i=n.length,a=this.image.height,l=i/s.span;n.fill(e.pixels.
paper);for(let c=Math.ceil(s.start/t)*t;c<s.end;c+=t)n[Math.min(i-1,Math.floor((c-s.start)*l))]=e.pixels.grid;for(let c of this.events.head.steps)for(let d of[c.
start_ns,c.end_ns])d>s.start&&d<s.end&&(n[Math.floor((d-s.start)*l)]=e.pixels.rule);r.set(n,0);for(let c=1;c<a;c*=2)r.copyWithin(c*i,0,Math.min(c,a-c)*i)}lane(e,t,n,r,s){
if(!e.lane?.ready)return;let{ratio:i,raster:a,pixels:l}=this,c=a.width,d=this.image.height,h=this.screenY(e)-S;if(h+e.height<=t||h>=this.height-S)return;a.line.
set(this.ground);let m=nr*i,p=e.thin?null:(g,w,$)=>{$-w>m&&s.push({i:g,left:w/i,right:$/i,y:h,floor:t})};if(!a.draw(e.lane,this.time.start,c/this.time.span,n,r,
p))return;let y=Math.max(Math.round(t*i),Math.round(h*i)),k=Math.min(d,Math.round((h+e.height-(e.thin?0:1))*i));for(let g=y;g<k;g++)l.set(a.line,g*c)}fitted(e,t){
let n=this.textWidths.get(e);if(n===void 0&&this.textWidths.set(e,n=this.context.measureText(e).width),n<=t)return e;let r=Math.floor(e.length*(t-8)/n);return r<
2?"":`${e.slice(0,r)}…`}labels(e,t,n,r){let{context:s,events:i}=this;s.font=`11px ${X}`,s.textBaseline="middle",s.textAlign="left";let a=l=>r&&!r.names[l]?t.css.
dim:n.darkInk[l]?"#14181d":"#fff";for(let l of["#14181d","#fff",t.css.dim]){s.fillStyle=l;for(let{i:c,left:d,right:h,y:m,floor:p}of e){if(a(i.name[c])!==l||m+4<
p)continue;let y=this.fitted(i.label(c),h-d-8);y&&s.fillText(y,L+d+4,S+m+U/2)}}}ruler(e,t){let{context:n,time:r,width:s}=this,{steps:i}=this.events.head;n.fillStyle=
e.css.paper,n.fillRect(0,0,s,S),n.fillStyle=e.css.dim;let[a,l]=r.end>=1e9?["s",1e9]:r.end>=1e6?["ms",1e6]:["µs",1e3],c=Math.max(0,-Math.floor(Math.log10(t/l)+1e-9));
for(let d=Math.ceil(r.start/t)*t;d<r.end;d+=t){let h=this.x(d),m=`${(d/l).toFixed(c)} ${a}`;n.fillRect(Math.floor(h),K-6,1,6),h+4+n.measureText(m).width<=s&&n.fillText(
m,h+4,K/2+1)}n.save(),n.beginPath(),n.rect(L,K,s-L,re),n.clip(),i.forEach(d=>{let h=this.x(d.start_ns),m=this.x(d.end_ns);if(m<L||h>s)return;n.fillStyle=e.css.band,
n.fillRect(h,K,Math.max(1,m-h-1),re-3);let p=Math.max(h,L),y=this.fitted(`${d.name}  ${M(d.length_ns)}`,Math.min(m,s)-p-10);n.fillStyle=e.css.dim,y&&n.fillText(
y,p+5,K+re/2-1)}),n.restore()}names(e){let{context:t,layout:n,height:r}=this,{rows:s,pinned:i}=n;t.fillStyle=e.css.paper,t.fillRect(0,S,L,r),t.fillStyle=e.css.rule,
t.fillRect(L-1,0,1,r),t.save(),t.beginPath(),t.rect(0,S+i,this.width,r),t.clip();for(let a of s)a.y>=i&&this.rowName(a,e);t.restore();for(let a of s)a.y<i&&this.
rowName(a,e);t.fillStyle=e.css.rule,t.fillRect(0,S-1,this.width,1),i&&t.fillRect(0,S+i-1,this.width,1),t.fillStyle=e.css.dim,t.font=`11px ${X}`,this.events.head.
steps.length&&t.fillText("steps",10,K+re/2-1)}rowName(e,t){let{context:n}=this,r=this.screenY(e);r>this.height||r+F<S||(e.title!==void 0?(n.fillStyle=t.css.ink,
n.font=`600 11px ${X}`,e.toggles&&this.arrow(e,r+F/2+2),n.fillText(this.fitted(e.title,this.width-30),e.toggles?22:10,r+F/2+2)):e.label&&(n.fillStyle=t.css.dim,
n.font=`11px ${X}`,n.fillText(this.fitted(e.label,L-30),22,r+U/2),e.toggles&&this.arrow(e,r+U/2)))}arrow(e,t){this.context.fillText(e.toggles?.some(n=>n.open)?"\
▾":"▸",10,t)}};function sr(o,e){let t=o/Math.max(2,e),n=10**Math.floor(Math.log10(t)),r=t/n;return n*(r>5?10:r>2?5:r>1?2:1)}var or=6,Te=class{constructor(e,t,n,r){this.events=e;this.relations=t;this.go=n;this.search=r}events;relations;go;search;list=u("dl");element(e){this.list.replaceChildren();
let{events:t}=this;switch(this.say("duration",M(t.duration(e))),this.say("begins",ir(t.start[e])),t.kind(e)){case"gpu":this.operation(e);break;case"idle":this.gap(
e);break;case"api":this.call(e);break;case"ops":this.op(e);break;default:break}let n=t.head.names[t.name[e]];return n.short&&n.cause===null&&this.say("full name",
u("code",{},n.text)),u("div",{class:"body"},u("div",{class:"facts"},this.list),u("div",{class:"chain"},...this.inside(e),...this.within(e)))}same(e){let{events:t}=this,
n=t.label(e);return u("p",{class:"quiet"},`${R(t.counts[t.name[e]])} of this name · `,u("button",{class:"go",onclick:()=>this.search(n)},"search"))}say(e,...t){
let n=t.filter(r=>r!=null&&r!=="");n.length&&this.list.append(u("dt",{},e),u("dd",{},...n))}link(e,t=""){return u("button",{class:"go",title:this.events.text(e),
onclick:()=>this.go(e)},this.events.label(e)+t)}operation(e){let{events:t,relations:n}=this,{head:r,particulars:s,start:i}=t,a=s.launches[t.argument[e]-1],l=n.callOf(
e),c=r.names[t.name[e]].identity;a?.floor_ns!=null&&this.say("roofline",`${H(a.floor_ns,t.duration(e))} of it reached: at least ${M(a.floor_ns)}, bound by ${a.bound??
"?"}`);for(let[h,m]of s.identities[c??b]?.facts??[])this.say(h,m);a?.grid&&a.block&&(this.say("grid × block",`${a.grid.join(", ")} × ${a.block.join(", ")}`),this.
say("threads",R([...a.grid,...a.block].reduce((h,m)=>h*m,1)))),a?.registers!=null&&this.say("registers, shared",`${a.registers} a thread, ${O(a.shared_bytes??0)}\
 a block`),a?.moved_bytes!=null&&this.say("moved",`${O(a.moved_bytes)}${t.duration(e)?`, ${O(a.moved_bytes/t.duration(e)*1e9)}/s`:""}`),a?.source&&this.say("mem\
ory",`${a.source} → ${a.target??"?"}`),l!==b&&(this.say("launched by",this.link(l,`  ${M(t.duration(l))}`)),this.say("launch→start",M(i[e]-i[l])));let d=n.opOf(
e);d!==b&&(this.say("op",this.link(d)),this.inputs(d))}inside(e){let{events:t}=this,n=t.kind(e)==="gpu"?t.particulars.launches[t.argument[e]-1]?.inside:null,r=t.
particulars.inside[n??b];if(!r)return[];let s=r.facts.flatMap(([l,c])=>[u("dt",{},l),u("dd",{},c)]),i=document.getElementById(`inside-${n}`),a=u("button",{type:"\
button",class:"go",onclick:()=>{i.setAttribute("open",""),i.scrollIntoView({block:"start"})}},"all measured values");return[u("h3",{},"inside, by Nsight Compute"),
u("p",{},u("b",{},r.reason)),u("dl",{},...s),...i?[a]:[]]}inputs(e){let t=this.events.particulars.inputs[this.events.argument[e]-1];t&&(t.shapes&&this.say("shap\
es",u("code",{},t.shapes)),t.dtypes&&this.say("types",u("code",{},t.dtypes)),t.module&&this.say("module",t.module))}call(e){let{events:t,relations:n}=this,r=n.launched(
e),s=t.link[e];r.length&&(this.say("launches",this.link(r[0]),r.length>1?` and ${R(r.length-1)} more`:null),this.say("launch→start",M(t.start[r[0]]-t.start[e]))),
s!==b&&(this.say("op",this.link(s)),this.inputs(s))}op(e){let{events:t,relations:n}=this,r=t.link[e];this.inputs(e);let s=n.workOf(e);if(s.length){let i=s.reduce(
(a,l)=>a+t.duration(l),0);this.say("on the GPU",this.link(s[0]),s.length>1?` and ${R(s.length-1)} more, ${M(i)} in all`:null)}if(r!==b)this.say("backward of",this.
link(r));else{let i=n.backwardOf(e);i.length&&this.say("differentiated by",this.link(i[0]))}}gap(e){let{events:t}=this,n=t.laneOf(e),{start:r,end:s,link:i}=t,a=e,
l=e;for(;a>n.first&&i[a-1]===i[e]&&r[a]===s[a-1];)a--;for(;l+1<n.beyond&&i[l+1]===i[e]&&s[l]===r[l+1];)l++;let c=[];for(let d=a;d<=l;d++)c.push(`${t.label(d)} ${M(
t.duration(d))}`);this.say("whole gap",`${M(s[l]-r[a])}: ${c.join(", ")}`),i[e]!==b&&this.say("ended by",this.link(i[e]))}within(e){let{events:t,relations:n}=this,
r=t.laneOf(e),{kind:s}=r.group.track,i=n.callOf(e),a=r.group.track.thread!==null?e:i!==b?i:s==="gpu"?n.opOf(e):b;if(a===b)return[];let{thread:l}=t.laneOf(a).group.
track,c=t.start[a],d=n.around(n.group("python",l),c,s==="python"?r.depth:1/0),h=s==="python"?[]:n.around(n.group("ranges",l),c,s==="ranges"?r.depth:1/0),m=s==="\
python"||s==="ranges"?[]:n.around(n.group("ops",l),c,s==="ops"?r.depth:1/0),p=[...h,...d.slice(-or),...m].filter(y=>y!==e);return p.length?[u("h3",{},"within"),
...p.map(y=>this.link(y,`  ${M(t.duration(y))}`))]:[]}},ir=o=>`${(o/1e6).toFixed(3)} ms`;var ar=[[["W","S"],"zoom in, out (also Ctrl and wheel, pinch; wheel alone once the timeline has the focus)"],[["A","D"],"pan (also drag, Shift and wheel)"],[["←",
"→"],"previous, next event of the row; without a selection, pan"],[["↑","↓"],"out to the caller, in to the callee; without a selection, scroll"],[["Enter"],
"select an event in the middle of the view"],[["F","0"],"fit the selection, the whole trace"],[["L"],"follow the link: kernel ↔ launch ↔ op, backward ↔ forward"],
[["G"],"next, largest gap of the cause that is searched for"],[["R"],"select the visible range (also Shift and drag, or drag on the ruler)"],[["P","T"],"fold or\
 unfold Python; the streams of a GPU with many"],[["/","N","Shift+N"],"search, next, previous match"],[["Esc"],"clear"]];function _t(o){let e=u("input",{type:"s\
earch",placeholder:"Search names   /",spellcheck:"false",autocomplete:"off","aria-label":"Search names"}),t=u("button",{type:"button","aria-label":"Previous mat\
ch",disabled:!0},"↑"),n=u("button",{type:"button","aria-label":"Next match",disabled:!0},"↓"),r=u("output",{"aria-live":"polite"}),s=u("output"),i=u("button",
{type:"button",title:"Whole trace (0)"},"Whole trace"),a=u("button",{type:"button","aria-label":"Keys",title:"Keys (?)"},"?"),l=u("div",{class:"legends"}),c=u("\
canvas",{class:"map",role:"img","aria-label":"The whole trace; drag to move the view"}),d=u("canvas",{class:"view",tabindex:0,role:"application","aria-label":"T\
imeline. W and S zoom, A and D pan, Enter selects, arrow keys move between events, slash searches, question mark lists the keys."}),h=u("canvas",{class:"over","\
aria-hidden":"true"}),m=u("div",{class:"tip",role:"tooltip",hidden:!0}),p=u("div",{class:"stage"},d,h,m),y=u("aside",{class:"event","aria-label":"Selection","ar\
ia-live":"polite",hidden:!0}),k=u("dialog",{"aria-label":"Keys"},u("h2",{},"Keys"),u("dl",{},...ar.flatMap(([w,$])=>[u("dt",{},...w.flatMap(v=>[u("kbd",{},v)," "])),
u("dd",{},$)])),u("form",{method:"dialog"},u("button",{},"Close"))),g=u("div",{class:"tools",role:"toolbar","aria-label":"Timeline tools"},e,t,n,r,u("span",{class:"\
room"}),s,i,a);return o.replaceChildren(u("div",{class:"heading"},u("h2",{},"Timeline"),g),l,c,p,y,k),{find:e,previous:t,next:n,found:r,span:s,whole:i,help:a,legend:l,
map:c,stage:p,view:d,over:h,tip:m,panel:y,keys:k}}var lr=4,Be=["matmul","comm","copy","memset"],Le=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d");let r=s=>{let i=(s.
offsetX-L)/(e.clientWidth-L)*n.length,a=n.span/2;n.stop(),n.move(i-a,i+a)};e.addEventListener("pointerdown",s=>{e.setPointerCapture(s.pointerId),r(s)}),e.addEventListener(
"pointermove",s=>{s.buttons&&r(s)})}canvas;events;time;context;image=null;ratio=1;resize(e){this.ratio=e,this.canvas.width=this.canvas.clientWidth*e,this.canvas.
height=this.canvas.clientHeight*e,this.image=null}forget(){this.image=null}draw(e){let{context:t,canvas:n,ratio:r,time:s}=this;if(n.width<=L*r)return;this.image??=
this.sketch(e),t.putImageData(this.image,0,0),t.setTransform(r,0,0,r,0,0);let i=n.clientWidth-L,a=n.clientHeight,l=L+Math.max(0,s.start/s.length)*i,c=L+Math.min(
1,s.end/s.length)*i;t.fillStyle=e.css.dim,t.font=`11px ${X}`,t.textBaseline="middle",t.fillText("whole trace",10,a/2),t.fillStyle=`${e.css.paper}b8`,t.fillRect(
L,0,l-L,a),t.fillRect(c,0,L+i-c,a),t.strokeStyle=e.css.accent,t.lineWidth=1.5,t.strokeRect(l+.75,1.25,Math.max(2,c-l-1.5),a-2.5)}sketch(e){let{events:t,canvas:n,
ratio:r}=this,{head:s}=t,{width:i,height:a}=n,l=Math.round(L*r),c=Math.max(1,i-l),d=this.busiestDevice(),h=Be.map(()=>new Float32Array(c)),m=s.causes.map(()=>new Float32Array(
c));for(let v of t.lanes)v.group.track.device===d&&(v.group.track.kind==="gpu"&&this.spread(v,c,f=>h[Math.max(0,Be.indexOf(s.names[t.name[f]].kind))]),v.group.track.
kind==="idle"&&this.spread(v,c,f=>m[Math.max(0,s.causes.indexOf(s.names[t.name[f]].cause??""))]));let p=new ImageData(i,a),y=new Uint32Array(p.data.buffer),k=Math.
round(lr*r),g=a-2*k,w=Be.map(v=>V(se(v,e.dark))),$=s.causes.map(v=>V(Fe(le(v),e.paper,.8)));y.fill(e.pixels.paper);for(let v=0;v<c;v++){let f=a-k,T=1,x=(A,P)=>{
let _=Math.max(k,f-A*g);for(let C=Math.round(f)-1;C>=Math.round(_);C--)y[C*i+l+v]=P;f=_};h.forEach((A,P)=>{let _=Math.min(T,A[v]);x(_,w[P]),T-=_}),m.forEach((A,P)=>x(
A[v],$[P]))}return p}busiestDevice(){let e=new Map;for(let{group:t,first:n,beyond:r}of this.events.lanes){let{device:s,kind:i}=t.track;i==="gpu"&&s!==null&&e.set(
s,(e.get(s)??0)+this.events.sum[r]-this.events.sum[n])}return[...e].sort((t,n)=>n[1]-t[1])[0]?.[0]??null}spread(e,t,n){let{start:r,end:s}=this.events,i=t/this.time.
length;for(let a=e.first;a<e.beyond;a++){let l=r[a]*i,c=s[a]*i,d=n(a);for(let h=Math.floor(l);h<c&&h<t;h++)d[h]+=Math.min(c,h+1)-Math.max(l,h)}}};var Ae=class{constructor(e,t){this.canvas=e;this.picture=t;this.context=e.getContext("2d")}canvas;picture;context;ratio=1;isEmpty=!0;resize(e){this.ratio=e,this.
canvas.width=this.picture.width*e,this.canvas.height=this.picture.height*e}draw(e,t){let{context:n,picture:r,ratio:s}=this,i=this.isEmpty;if(this.isEmpty=e.chosen<
0&&e.hovered<0&&!e.range,!(i&&this.isEmpty)){n.setTransform(s,0,0,s,0,0),n.clearRect(0,0,r.width,r.height),n.save(),n.beginPath(),n.rect(L,0,r.width-L,r.height),
n.clip(),e.range&&this.range(e.range,t),n.beginPath(),n.rect(L,S,r.width-L,r.height),n.clip();for(let a of e.family)this.frame(a,t.css.dim,1.5);for(let[a,l]of e.
arrows)this.arrow(a,l,t);e.chosen>=0&&this.frame(e.chosen,t.css.accent,2),e.hovered>=0&&e.hovered!==e.chosen&&this.frame(e.hovered,t.css.ink,1),n.restore()}}range([
e,t],n){let{context:r,picture:s}=this,i=s.x(e),a=s.x(t);r.globalAlpha=.12,r.fillStyle=n.css.accent,r.fillRect(i,0,a-i,s.height),r.globalAlpha=1,r.fillRect(i,0,1,
s.height),r.fillRect(a-1,0,1,s.height)}frame(e,t,n){let{context:r,picture:s}=this,i=s.box(e),{pinned:a}=s.layout;if(!i||i.row.y>=a&&i.y<S+a-8)return;let l=Math.
max(L-4,i.x),c=Math.min(s.width+4,i.right);r.strokeStyle=t,r.lineWidth=n,r.strokeRect(l-.5,i.y-.5,Math.max(2,c-l),i.height+1)}arrow(e,t,n){let{context:r,picture:s}=this,
i=s.box(e),a=s.box(t);if(!i||!a)return;let l=i.y>a.y,c=i.x,d=a.x+1,h=l?1:-1,m=Math.max(S+s.layout.pinned-4,l?i.y:i.y+i.height),p=l?a.y+a.height:a.y,y=(p-m)*.55||
20;for(let[k,g]of[[n.css.paper,4],[n.css.accent,1.75]])r.strokeStyle=r.fillStyle=k,r.lineWidth=g,r.beginPath(),r.moveTo(c,m),r.bezierCurveTo(c,m+y,d,p-y,d,p+5*h),
r.stroke();r.beginPath(),r.arc(c,m,3,0,7),r.fill(),r.beginPath(),r.moveTo(d,p),r.lineTo(d-4.5,p+8*h),r.lineTo(d+4.5,p+8*h),r.fill()}};var ze=24,$e=class{constructor(e){this.events=e}events;linkedTo(e,t){let n=[],{link:r}=this.events;for(let s of this.events.lanes)if(s.group.track.kind===e)for(let i=s.
first;i<s.beyond;i++)t(r[i])&&n.push(i);return n}launched(e){return this.linkedTo("gpu",t=>t===e)}backwardOf(e){return this.linkedTo("ops",t=>t===e)}callsOf(e){
let{events:t}=this,{start:n,end:r}=t,s=t.laneOf(e).group.track.thread,i=[];for(let a of t.lanes)if(!(a.group.track.kind!=="api"||a.group.track.thread!==s))for(let l=t.
after(a,n[e]);l<a.beyond&&n[l]<r[e];l++)n[l]>=n[e]&&i.push(l);return i}workOf(e){let t=new Set(this.callsOf(e));return this.linkedTo("gpu",n=>n===e||t.has(n))}callOf(e){
let{events:t}=this,n=t.link[e];return t.kind(e)==="gpu"&&n!==b&&t.kind(n)==="api"?n:b}opOf(e){let{events:t}=this,n=t.kind(e);if(n==="ops")return e;if(n==="api")
return t.link[e];if(n!=="gpu")return b;let r=this.callOf(e);return r!==b?t.link[r]:t.link[e]}arrows(e){let{events:t}=this,n=t.link[e];switch(t.kind(e)){case"gpu":case"\
syncs":return n!==b?[[n,e]]:[];case"idle":return n!==b&&t.link[n]!==b?[[t.link[n],n]]:[];case"api":return this.launched(e).slice(0,ze).map(r=>[e,r]);case"ops":return[
...n!==b?[[n,e]]:this.backwardOf(e).slice(0,ze).map(s=>[e,s]),...this.workOf(e).slice(0,ze).map(s=>[t.link[s],s])];default:return[]}}family(e){let{events:t}=this,
n=t.link[e],r=[n];return n!==b&&r.push(t.link[n]),t.kind(e)==="idle"&&n!==b&&t.link[n]!==b&&r.push(t.link[t.link[n]]),r.filter(s=>s!==b)}around(e,t,n=1/0){let r=[];
for(let s of e?.lanes??[]){if(s.depth>=n||!s.ready)continue;let i=this.events.after(s,t);i<s.beyond&&this.events.start[i]<=t&&r.push(i)}return r}group(e,t){return this.
events.groups.find(n=>n.track.kind===e&&n.track.thread===t)}neighbour(e,t){let{events:n}=this,r=n.laneOf(e),s=r.group.lanes[r.depth+t];if(!s)return b;let i=t<0?
n.after(s,n.start[e]):cr(n,s,n.start[e]);return i<s.beyond&&n.start[i]<n.end[e]&&n.end[i]>n.start[e]?i:b}};function cr(o,e,t){let n=e.first,r=e.beyond;for(;n<r;){
let s=n+r>>>1;o.start[s]<t?n=s+1:r=s}return n}var Se=class{constructor(e){this.events=e}events;matches=null;total=0;wanted=null;seek(e){let t=e.trim().toLowerCase();this.choose(t?n=>n.text.toLowerCase().includes(
t)||n.short.toLowerCase().includes(t):null)}seekNames(e){let t=new Set(e);this.choose((n,r)=>t.has(r))}again(){this.choose(this.wanted)}choose(e){if(this.wanted=
e,this.matches=null,this.total=0,!e)return;let{events:t}=this,n=Uint8Array.from(t.head.names,(i,a)=>e(i,a)?1:0),r=new Uint32Array(t.start.length+1),{name:s}=t;for(let i=0,
a=0;i<s.length;i++)r[i+1]=a+=n[s[i]];n.forEach((i,a)=>{i&&(this.total+=t.counts[a])}),this.matches={names:n,before:r}}next(e,t,n){if(!this.matches||!this.total)
return b;let r=this.step(e,t,t!==b?this.events.start[t]:n);return r!==b?r:this.step(e,b,e>0?-1/0:1/0)}step(e,t,n){let{events:r}=this,{start:s,name:i}=r,{names:a}=this.
matches,l=(d,h)=>(s[d]-s[h]||d-h)*e>0,c=b;for(let d of r.lanes){if(!d.ready)continue;let h=d.first,m=d.beyond;for(;h<m;){let p=h+m>>>1;s[p]<n||e<0&&s[p]===n&&p<
t?h=p+1:m=p}for(let p=e>0?h:h-1;p>=d.first&&p<d.beyond&&!(c!==b&&l(p,c));p+=e)if(a[i[p]]&&(t===b||l(p,t))){c=p;break}}return c}};var Ke=8,dr=[["On the GPU",["gpu"]],["GPU idle",["idle"]],["API calls",["api"]],["Outermost ops",["ops"]]];function ur(o,e,t,n){let r=new Map;for(let s of o.lanes){
let{kind:i}=s.group.track;if(!(!s.ready||!n.includes(i)||i==="ops"&&s.depth>0))for(let a=o.after(s,e);a<s.beyond&&o.start[a]<t;a++){let l=Math.min(t,o.end[a])-Math.
max(e,o.start[a]),c=r.get(o.name[a]);c?(c[0]++,c[1]+=l):r.set(o.name[a],[1,l])}}return[...r].map(([s,[i,a]])=>({name:s,count:i,time:a})).sort((s,i)=>i.time-s.time)}
function Rt(o,e,t,n){let r=u("div",{class:"totals"});for(let[s,i]of dr){let a=ur(o,e,t,i),l=a.reduce((h,m)=>h+m.time,0);if(!a.length)continue;let c=a.slice(0,Ke).
map(h=>{let m=o.head.names[h.name],p=m.short||m.text;return u("tr",{},u("td",{class:"number"},M(h.time)),u("td",{class:"number"},H(h.time,t-e)),u("td",{class:"n\
umber"},R(h.count)),u("td",{},u("button",{class:"go",title:m.text,onclick:()=>n(p)},p)))}),d=a.length>Ke?u("p",{class:"quiet"},`and ${R(a.length-Ke)} more names`):
"";r.append(u("div",{},u("h3",{},`${s}: ${M(l)}`),u("table",{},u("thead",{},u("tr",{},...["time","share","count","name"].map((h,m)=>u("th",{scope:"col",class:m<
3?"number":""},h)))),u("tbody",{},...c)),d))}return r}var _e=class{constructor(e,t){this.length=e;this.changed=t;this.end=e}length;changed;start=0;end;gliding=0;get span(){return this.end-this.start}move(e,t){let{length:n}=this,
r=Math.min(n*1.02,Math.max(200,t-e)),s=t-e===r?e:(e+t-r)/2;this.start=Math.max(-.01*n,Math.min(s,(1+.01)*n-r)),this.end=this.start+r,this.changed()}pan(e){this.
move(this.start+e,this.end+e)}zoom(e,t=(this.start+this.end)/2){this.move(t-(t-this.start)*e,t+(this.end-t)*e)}stop(){this.gliding++}glide(e,t){let n=++this.gliding,
r=this.start,s=this.end,i=performance.now();if(matchMedia("(prefers-reduced-motion: reduce)").matches){this.move(e,t);return}let a=()=>{if(n!==this.gliding)return;
let l=Math.min(1,(performance.now()-i)/160),c=1-(1-l)**3;this.move(r+(e-r)*c,s+(t-s)*c),l<1&&requestAnimationFrame(a)};a()}};var hr=400,mr=160,Ct=.02,pr=[["GPU",[["matmul","matmul, conv"],["attention","attention"],["norm","norm, softmax, reduction"],["kernel","other kernel"],["graph",
"graph"],["comm","collective"],["sync","wait"],["copy","copy"],["memset","memset"]]],["Calls",[["launch","launch"],["wait","wait"],["api_copy","copy"],["allocat\
e","allocation"],["api","other call"]]]],We=o=>E("svg",{class:"swatch",viewBox:"0 0 1 1","aria-hidden":"true"},E("rect",{width:1,height:1,fill:At(o)})),Re=class{constructor(e,t,n,r,s=()=>{}){
this.head=e;this.whenDrawn=s;this.events=new xe(e),this.events.readFirst(t,n),this.parts=_t(r),this.time=new _e(Math.max(1,e.length_ns),()=>this.redraw()),this.
picture=new Ee(this.parts.view,this.events,this.time),this.overlay=new Ae(this.parts.over,this.picture),this.minimap=new Le(this.parts.map,this.events,this.time),
this.relations=new $e(this.events),this.search_=new Se(this.events),this.details=new Te(this.events,this.relations,c=>this.choose(c,!0),c=>this.search(c)),this.
parts.map.hidden=!e.tracks.some(c=>c.device!==null),this.dress();let[i,a]=e.window,l=a-i;l>0&&this.time.move(i-Ct*l,a+Ct*l),this.opening=[this.time.start,this.time.
end],this.resize(),this.openAddress(),new ResizeObserver(()=>{this.picture.has(this.box())||this.resize()}).observe(this.parts.stage),yt(()=>{this.dress(),this.
draw()}),addEventListener("hashchange",()=>this.openAddress())}head;whenDrawn;events;time;picture;relations;search_;parts;chosen=b;hovered=b;range=null;overlay;minimap;details;look;paint;colours;pending=!1;writing=0;opening;gaps=null;addRest(e){
this.events.readRest(e,0),this.parts.find.value&&this.seek(this.parts.find.value);let{event:t}=De(location.hash);t!==void 0&&this.chosen===b&&this.openAddress(),
this.chosen!==b&&this.choose(this.chosen),this.redraw()}replace(e,t,n){let{events:r,chosen:s}=this,i=s===b?null:{kind:r.kind(s),name:r.name[s],start:r.start[s]};
r.renew(e),r.readRest(t,r.readFirst(t,n)),this.picture.place(),this.minimap.forget(),this.gaps=null,this.search_.again(),this.choose(i?r.find(i.kind,i.name,i.start):
b),this.afterSearch()}goTo(e,t){let n=(t-e)*.05;this.parts.stage.scrollIntoView({block:"nearest"}),this.time.glide(e-n,t+n)}search(e){this.parts.find.value=e,this.
seek(e),this.parts.stage.scrollIntoView({block:"nearest"}),this.next(1)}showFinding(e){let t=this.events.particulars.spots.find(n=>n.finding===e);if(t){if(this.
parts.stage.scrollIntoView({block:"center"}),!t.names.length){this.throughGaps(t.cause);return}this.parts.find.value="",this.search_.seekNames(t.names),this.afterSearch(),
this.next(1)}}showInside(e){let{name:t,start_ns:n}=this.events.particulars.inside[e];t===null||n===null||(this.parts.stage.scrollIntoView({block:"center"}),this.
choose(this.events.find("gpu",t,n),!0))}redraw(){this.pending||(this.pending=!0,requestAnimationFrame(()=>{this.pending=!1,this.draw()}))}draw(){this.picture.draw(
this.look,this.paint,this.colours,this.search_.matches),this.minimap.draw(this.look),this.drawOver(),this.parts.span.textContent=M(this.time.span),this.whenDrawn(),
clearTimeout(this.writing),this.writing=setTimeout(()=>this.writeAddress(),hr)}drawOver(){let{chosen:e,hovered:t,range:n,relations:r}=this,s=e!==b;this.overlay.
draw({chosen:e,hovered:t,range:n,family:s?r.family(e):[],arrows:s?this.arrows:[]},this.look)}arrows=[];dress(){this.look=St(),this.paint=$t(this.head.names,this.
look.dark,this.look.paper),this.minimap.forget(),this.colourMatches(),this.parts.legend.replaceChildren(...this.legend())}colourMatches(){let{full:e,faded:t}=this.
paint,{matches:n}=this.search_;this.colours=n?e.map((r,s)=>n.names[s]?r:t[s]):e}box(){let{width:e,height:t}=this.parts.stage.getBoundingClientRect();return{width:e,
height:t,ratio:window.devicePixelRatio||1}}resize(){let e=this.box(),{ratio:t}=e;this.picture.resize(e),this.limitHeight(),this.overlay.resize(t),this.minimap.resize(
t),this.draw()}limitHeight(){this.parts.stage.style.maxHeight=`${Math.max(mr,S+this.picture.layout.height+U)}px`}fold(e){let t=!e.some(n=>n.open);for(let n of e)
n.open=t;this.placed()}placed(){this.picture.place(),this.limitHeight(),this.redraw()}*legend(){let e=this.head.names.filter((r,s)=>this.events.counts[s]),t=new Set(
e.map(r=>r.kind));for(let[r,s]of pr){let i=s.flatMap(([a,l])=>t.has(a)?[u("li",{},We(se(a,this.look.dark)),l)]:[]);i.length&&(yield u("ul",{class:"legend","aria\
-label":r},u("li",{class:"quiet"},r),...i))}let n=e.flatMap(({cause:r,short:s,text:i})=>r===null?[]:[u("li",{},u("button",{type:"button",class:"plain",title:"Go\
 through these gaps, the largest first",onclick:()=>this.throughGaps(r)},We(le(r)),s||i))]);n.length&&(yield u("ul",{class:"legend","aria-label":"Idle"},u("li",
{class:"quiet"},"Idle"),...n))}throughGaps(e){let{events:t}=this,n=this.head.names.flatMap((s,i)=>s.cause===e?[i]:[]);this.parts.find.value=`idle: ${e.replaceAll(
"_"," ")}`,this.search_.seekNames(n);let r=[];for(let s of t.lanes)if(s.group.track.kind==="idle")for(let i=s.first;i<s.beyond;i++)n.includes(t.name[i])&&r.push(
i);r.sort((s,i)=>t.duration(i)-t.duration(s)),this.gaps={rows:r,at:-1},this.afterSearch(),this.nextGap()}nextGap(){let{gaps:e}=this;e?.rows.length&&(e.at=(e.at+
1)%e.rows.length,this.choose(e.rows[e.at],!0),this.parts.found.textContent=`gap ${R(e.at+1)} of ${R(e.rows.length)}, the largest first: G for the next`)}seek(e){
this.gaps=null,this.search_.seek(e),this.afterSearch()}afterSearch(){let{found:e,next:t,previous:n}=this.parts,{matches:r,total:s}=this.search_;e.textContent=r?
N(s,"match","matches"):"",t.disabled=n.disabled=!s,this.colourMatches(),this.redraw()}next(e){let t=this.search_.next(e,this.chosen,e>0?this.time.start:this.time.
end);t!==b&&this.choose(t,!0)}choose(e,t=!1){let{panel:n}=this.parts,{events:r}=this;if(this.chosen=e,this.arrows=e===b?[]:this.relations.arrows(e),n.hidden=e===
b&&!this.range,n.hidden&&(this.picture.covered=0),e!==b){let s=this.head.names[r.name[e]],i=this.paint.full[r.name[e]];this.show(u("h3",{},We([i&255,i>>>8&255,i>>>
16&255]),s.cause!==null?s.text:r.label(e)),this.details.same(e),this.details.element(e)),t&&this.reveal(e)}else this.range&&this.describeRange();this.redraw()}selectRange(e){
this.range=e&&[Math.max(0,Math.min(...e)),Math.min(this.time.length,Math.max(...e))],this.range&&(this.chosen=b,this.arrows=[]),this.parts.panel.hidden=!this.range&&
this.chosen===b,this.range&&this.describeRange(),this.redraw()}describeRange(){let[e,t]=this.range,n=u("button",{type:"button",onclick:()=>this.time.glide(e,t)},
"Zoom here");this.show(u("h3",{},`Selected ${M(t-e)}`),n,Rt(this.events,e,t,r=>this.search(r)))}show(e,t,n){let r=u("button",{type:"button",class:"close","aria-\
label":"Close",onclick:()=>{this.selectRange(null),this.choose(b),this.parts.view.focus({preventScroll:!0})}},"×");this.parts.panel.replaceChildren(u("div",{class:"\
title"},e,t,r),n)}reveal(e){let{events:t,time:n}=this,r=t.laneOf(e),s=t.duration(e),i=t.start[e];!r.group.open&&!ne.includes(r.group.track.kind)&&this.fold([r.group]);
let a=Math.max(s*8,4e4);s>n.span*.9||s/n.span<.004?n.glide(Math.max(0,i-a),Math.min(n.length,i+s+a)):(i<n.start||i+s>n.end)&&n.glide(i+s/2-n.span/2,i+s/2+n.span/
2),this.scrollTo([e,...this.relations.family(e)])}scrollTo(e){let{picture:t}=this,{pinned:n}=t.layout,{view:r,panel:s}=this.parts;t.covered=Math.max(0,r.getBoundingClientRect().
bottom-s.getBoundingClientRect().top);let i=Math.max(2*U,t.height-t.covered-S-n),a=e.map(d=>t.layout.of(this.events.laneOf(d))).filter(d=>d!==void 0&&d.y>=n).map(
d=>d.y);if(!a.length)return;let l=Math.min(...a),c=Math.max(...a)+U;c-l>i&&(l=a[0],c=l+U),l-t.scroll<n?t.scroll=l-n-F:c-t.scroll>n+i&&(t.scroll=Math.min(l-n-F,c-
n-i+6))}toggle(e){this.fold(this.events.groups.filter(t=>t.track.kind===e))}fit(e){let t=this.events.duration(e)*.15+200;this.time.glide(this.events.start[e]-t,
this.events.end[e]+t)}followLink(){let{chosen:e,relations:t,events:n}=this;if(e===b)return;let r=n.link[e],s=r!==b?r:t.launched(e)[0]??(n.kind(e)==="ops"?t.backwardOf(
e)[0]??t.workOf(e)[0]:void 0);s!==void 0&&this.choose(s,!0)}openAddress(){let{at:e,event:t,range:n}=De(location.hash);e&&e[1]>e[0]&&this.time.move(e[0],e[1]),n&&
this.selectRange(n),t!==void 0&&t<this.head.events&&this.events.laneOf(t).ready&&this.choose(t),(e||n||t!==void 0)&&this.parts.stage.scrollIntoView({block:"cent\
er"})}writeAddress(){let{time:e,chosen:t,range:n,opening:r}=this,s=e.start===r[0]&&e.end===r[1],i=Lt({...s?{}:{at:[e.start,e.end]},...t!==b?{event:t}:{},...n?{range:n}:
{}});if(!(!i&&!/^#(at|event|range)=/.test(location.hash)))try{history.replaceState(null,"",i?`#${i}`:location.href.split("#")[0])}catch{}}};var Ot={begin:performance.now()},Ce=o=>{Ot[o]=performance.now()},Ht=()=>new Promise(o=>requestAnimationFrame(()=>setTimeout(o)));function It(){let o=[...document.
querySelectorAll("main section[id]:not([hidden])")].flatMap(e=>{let t=e.querySelector("h2")?.textContent?.split(/[,:]/,1)[0]??e.getAttribute("aria-label");return t&&
e.childElementCount?[u("a",{href:`#${e.id}`},t)]:[]});Q("contents").replaceChildren(...o)}async function fr(){let o=await ve("data-timeline");Ce("inflated");let{
head:e,bytes:t,at:n}=te(o),r=null,s=new ke(()=>r);return r=new Re(e,t,n,Q("timeline"),()=>s.moved()),Et(r),Ce("drawn"),It(),r}function Pt(o,e){for(let[t,n]of document.
querySelectorAll(o).entries()){let r=e(t),s=n.querySelector("h3, summary")?.textContent??"";r&&n.append(u("button",{type:"button",class:"jump","aria-label":`Sho\
w on the timeline: ${s}`,onclick:r},"Show on the timeline"))}}async function gr(o){o.addRest(await ve("data-rest")),Pt(".finding",t=>()=>o.showFinding(t)),Pt("#\
inside details",t=>o.events.particulars.inside[t]?.start_ns==null?null:()=>o.showInside(t)),await Ht();let e=await wt("data-panels");for(let t of pt){let n=e[t.
name];if(!n)continue;let r=u("div",{class:"body"});Q("panels").append(u("section",{id:t.name,class:"section"},u("h2",{},t.title),r)),t.draw(n,r,o)}It(),Ce("comp\
lete")}document.querySelector("header")?.append(vt());var br=new Promise(o=>document.addEventListener("DOMContentLoaded",()=>o()));fr().then(async o=>{Object.assign(
window,{warpline:{marks:Ot,timeline:o}}),await Ht(),Ce("painted"),await br,await gr(o)});})();
